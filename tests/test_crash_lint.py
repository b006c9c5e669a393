"""``nearfar crash lint``: findings without a checker and without images."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import INCLUDE, PROGRAMS, document, needs_libpmem

pytestmark = needs_libpmem

TEXT = (PROGRAMS / "lint.c").read_text()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compile_c(tmp_path, "lint", TEXT, "-g", "-lpmem")


def sites(text: str) -> dict[str, int]:
    """The line of each rule that a program breaks."""
    marked = (re.search(r"SITE (\w+)", line) for line in text.splitlines())
    return {match[1]: number for number, match in enumerate(marked, 1) if match}


def test_each_rule_is_found_at_its_line(
    program: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), pool, "0")
    assert done.code == 1, done.stderr
    found = document(done)
    assert found["verdict"] == "violation"
    assert found["errors"] == 2
    places = {each["rule"]: each["place"] for each in found["findings"]}
    assert {rule: place.rpartition(":")[2] for rule, place in places.items()} == {
        rule: str(line) for rule, line in sites(TEXT).items()
    }
    assert all("lint.c:" in place for place in places.values())


def test_text_and_sarif(program: Path, run_nearfar: RunNearfar, tmp_path: Path) -> None:
    pool = str(tmp_path / "pool")
    arguments = ("--sarif", "found.sarif", "--", str(program), pool, "0")
    done = run_nearfar("crash", "lint", *arguments)
    line = sites(TEXT)["unflushed"]
    assert f"lint.c:{line}: error: this store is never flushed [unflushed]" in done.stdout
    assert "2 errors, 2 notes in " in done.stdout
    run = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error", "error", "note", "note"]
    regions = [
        result["locations"][0]["physicalLocation"]["region"]["startLine"]
        for result in run["results"]
    ]
    assert sorted(regions) == sorted(sites(TEXT).values())


def test_a_program_that_fails_is_inconclusive_without_an_error(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = "\n".join(line for line in TEXT.splitlines() if not re.search("SITE unf", line))
    program = compile_c(tmp_path, "fixed", text, "-g", "-lpmem")
    for code, expected, verdict in (("0", 0, "clean"), ("7", 3, "inconclusive")):
        pool = str(tmp_path / f"pool{code}")
        done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), pool, code)
        assert done.code == expected
        assert document(done)["verdict"] == verdict
    assert "ended with 7" in done.stderr


def test_a_program_without_a_pool_is_refused(run_nearfar: RunNearfar) -> None:
    run_nearfar("crash", "lint", "--", "true").assert_refused(2, "mapped no file")
    run_nearfar("crash", "lint", "--", "no-such-program").assert_refused(2, "cannot run no-such")


def transaction(folder: Path, bug: int, run_nearfar: RunNearfar) -> dict[str, Any]:
    """The result for a transaction of libpmemobj in a library."""
    text = (PROGRAMS / "opened_pair.c").read_text()
    host = compile_c(folder, f"host{bug}", text, "-g", "-DHOST")
    library = folder / f"pair{bug}.so"
    source = PROGRAMS / "opened_pair.c"
    flags = ["-shared", "-fPIC", "-g", f"-DBUG={bug}", INCLUDE, "-lpmemobj"]
    subprocess.run(["gcc", source, *flags, "-o", library], check=True)
    pool = folder / f"pool{bug}"
    subprocess.run([host, library, "make", pool], check=True)
    command = ("--json", "-", "--", str(host), str(library), "run", str(pool))
    return document(run_nearfar("crash", "lint", *command))


@pytest.mark.skipif(not Path("/usr/include/libpmemobj.h").exists(), reason="needs libpmemobj-dev")
def test_a_store_that_a_transaction_does_not_log(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    assert transaction(tmp_path, 0, run_nearfar)["findings"] == []
    found = transaction(tmp_path, 1, run_nearfar)["findings"]
    assert [each["rule"] for each in found] == ["unlogged"]
    line = next(
        number
        for number, text in enumerate((PROGRAMS / "opened_pair.c").read_text().splitlines(), 1)
        if "SITE 1" in text
    )
    assert found[0]["place"].endswith(f"opened_pair.c:{line}")
