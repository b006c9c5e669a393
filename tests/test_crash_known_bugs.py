"""``nearfar crash run`` on programs with known bugs, each found at its line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import (
    INCLUDE,
    PROGRAMS,
    crash_run,
    document,
    needs_explorer,
    needs_libpmem,
)

pytestmark = needs_explorer


@needs_libpmem
@pytest.mark.parametrize("bug", range(11))
def test_known_kinds_of_bugs_are_found_and_named(
    bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "intset.c").read_text()
    checker = compile_c(tmp_path, "check", text, "-DCHECK")
    program = compile_c(tmp_path, "intset", text, f"-DBUG={bug}", "-lpmem")
    budget = "1500" if bug == 0 else "50"
    done = crash_run(run_nearfar, program, checker, "--budget", budget)
    found = document(done)
    if bug == 0:
        assert (done.code, found["states_left"]) == (0, 0), done
        return
    lines = sites_of(text, bug)
    named = {int(finding["store"].rpartition(":")[2]) for finding in found["findings"]}
    assert done.code == 1
    assert set(lines) & named, found["findings"]


@needs_libpmem
@pytest.mark.parametrize(
    ("name", "bug"),
    [*(("skip_list_obj", bug) for bug in range(9)), *(("removed_value", bug) for bug in range(2))],
)
def test_known_bugs_on_libpmemobj_are_found_and_named(
    name: str, bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / f"{name}.c").read_text()
    library = compile_c(
        tmp_path, "check.so", text, INCLUDE, "-DCHECK", "-shared", "-fPIC", "-lpmemobj"
    )
    program = compile_c(tmp_path, name, text, INCLUDE, f"-DBUG={bug}", "-lpmemobj")
    pool = tmp_path / "pool"
    subprocess.run([program, "make", pool], check=True)
    done = run_nearfar(
        "crash",
        "run",
        "--checker",
        f"{library}:check",
        "--budget",
        "2500" if bug == 0 else "50",
        "--json",
        "-",
        "--",
        str(program),
        "run",
        str(pool),
        timeout=600,
    )
    found = document(done)
    assert not found["warnings"]
    if bug == 0:
        assert (done.code, found["violations"]) == (0, 0), done
        return
    (line,) = sites_of(text, bug)
    named = {Path(finding["store"]).name for finding in found["findings"]}
    assert done.code == 1
    assert f"{name}.c:{line}" in named, found["findings"]


@needs_libpmem
@pytest.mark.parametrize("bug", [0, 1])
def test_snapshots_of_a_library_that_alone_sees_libpmemobj(
    bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "opened_pair.c").read_text()
    shared = ("-shared", "-fPIC", INCLUDE, f"-DBUG={bug}")
    checker = compile_c(tmp_path, "check.so", text, "-DCHECK", *shared, "-lpmemobj")
    library = compile_c(tmp_path, "pair.so", text, *shared, "-lpmemobj")
    program = compile_c(tmp_path, "host", text, "-DHOST", "-ldl")
    pool = tmp_path / "pool"
    subprocess.run([program, library, "make", pool], check=True)
    done = run_nearfar(
        "crash",
        "run",
        "--checker",
        f"{checker}:check",
        "--budget",
        "400",
        "--json",
        "-",
        "--",
        str(program),
        str(library),
        "run",
        str(pool),
    )
    found = document(done)
    assert not found["warnings"]
    if bug == 0:
        assert (done.code, found["violations"]) == (0, 0), done
        return
    (line,) = sites_of(text, 1)
    assert done.code == 1, done
    finding = found["findings"][0]
    assert (finding["missing"], Path(finding["store"]).name) == ("log", f"pair.so.c:{line}")


@needs_libpmem
@pytest.mark.parametrize("bug", [0, 1])
def test_recovery_of_a_checker_is_crashed_too(
    bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "recovering.c").read_text()
    program = compile_c(tmp_path, "pair", text, "-lpmem")
    checker = compile_c(tmp_path, "check", text, "-DCHECK", f"-DBUG={bug}", "-lpmem")
    done = crash_run(run_nearfar, program, checker)
    found = document(done)
    assert found["recovery_states"] > 0
    if bug == 0:
        assert (done.code, found["violations"], found["states_left"]) == (0, 0, 0), done
        return
    assert done.code == 1
    finding = found["findings"][0]
    assert (finding["during_recovery"], finding["missing"]) == (True, "late_flush"), finding
    lines = [i for i, line in enumerate(text.splitlines(), 1) if "p->log.old;" in line]
    assert int(finding["store"].rpartition(":")[2]) in lines


def sites_of(text: str, bug: int) -> list[int]:
    """Lines of a program that say that they hold a bug."""
    return [i for i, line in enumerate(text.splitlines(), 1) if re.search(rf"SITE {bug}\b", line)]
