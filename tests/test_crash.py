"""``nearfar crash``: our structures are right, wrong programs are found out and named."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import Outcome, RunNearfar
from nearfar.errors import MachineError
from nearfar.verify.explorer import call_sites, explore, shipped
from nearfar.verify.findings import Exploration

DOCS = Path(__file__).parent.parent / "docs" / "crash.md"
STRUCTURES = ("map", "list", "skip_list", "queue")


def _built() -> bool:
    try:
        return shipped("nearfar-crash").exists()
    except MachineError:
        return False


pytestmark = pytest.mark.skipif(not _built(), reason="built without libpmemobj: no explorer")


def document(done: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("structure", "n"), [*((name, 400) for name in STRUCTURES), ("move", 200)])
@pytest.mark.parametrize("platform", ["adr", "eadr"])
def test_our_structures_survive_every_image(structure: str, n: int, platform: str) -> None:
    result = explore("check", {"structure": structure, "n": n, "seed": 3, "platform": platform})
    assert (result.violations, result.states_left) == (0, 0)
    assert result.states > 200


def test_check_as_a_user_runs_it(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = run_nearfar("crash", "check", "--structure", "map", "-n", "200", "--json", "-")
    assert done.code == 0, done
    found = document(done)
    assert found["violations"] == found["states_left"] == 0
    assert found["states"] > 200
    assert found["states_per_s"] > 0
    assert found["findings"] == []
    assert list(tmp_path.iterdir()) == []


def test_a_budget_is_honest(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("crash", "check", "--structure", "list", "--budget", "50", "--json", "-")
    found = document(done)
    assert (done.code, found["states"]) == (0, 50)
    assert found["states_left"] > 0


def mutant(structure: str, kind: str, site: str) -> Exploration:
    file, _, line = site.rpartition(":")
    asked = {"structure": structure, "n": 200, "seed": 1, "violations": 20, "budget": 20_000}
    return explore("check", {**asked, "suppress": f"{kind} {line} {file}"})


@pytest.mark.parametrize("structure", STRUCTURES)
def test_each_call_taken_away_is_found_at_its_line(structure: str) -> None:
    sites = call_sites({"structure": structure, "n": 200, "seed": 1})
    named = 0
    for kind, site, stores in sites:
        result = mutant(structure, kind, site)
        named += any(finding.store in stores for finding in result.findings)
    assert len(sites) >= 4
    assert named >= 0.75 * len(sites)  # the share over all structures stands in RESULTS.md


@pytest.mark.long
def test_each_call_of_a_transaction_taken_away_is_found() -> None:
    trace = {"structure": "move", "n": 200, "seed": 1}
    sites = call_sites(trace)
    found = named = 0
    for kind, site, stores in sites:
        file, _, line = site.rpartition(":")
        try:
            result = explore("check", {**trace, "suppress": f"{kind} {line} {file}"})
        except MachineError:
            continue  # without its content's log record, the program crashes by itself
        found += result.violations > 0
        named += any(finding.store in stores for finding in result.findings)
    assert {kind for kind, _, _ in sites} == {"flush", "fence", "log"}
    assert found >= len(sites) - 1
    assert named >= 0.5 * len(sites)  # see RESULTS.md


def blocks() -> list[str]:
    return re.findall(r"```c\n(.*?)```", DOCS.read_text(), re.DOTALL)


def compile_c(folder: Path, name: str, text: str, *flags: str) -> Path:
    source = folder / f"{name}.c"
    source.write_text(text)
    program = folder / name
    subprocess.run(["gcc", "-g", "-O1", str(source), "-o", str(program), *flags], check=True)
    return program


needs_libpmem = pytest.mark.skipif(
    shutil.which("gcc") is None or not Path("/usr/include/libpmem.h").exists(),
    reason="needs gcc and libpmem-dev",
)


def crash_run(run: RunNearfar, program: Path, checker: Path | str, *flags: str) -> Outcome:
    pool = program.with_name("pool")
    pool.unlink(missing_ok=True)
    return run(
        "crash", "run", "--checker", str(checker), "--json", "-", *flags,
        "--", str(program), str(pool),
    )  # fmt: skip


@needs_libpmem
def test_the_tutorial(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    buggy, check, mend = blocks()
    assert len(buggy.splitlines()) <= 42
    checker = compile_c(tmp_path, "check", check)
    program = compile_c(tmp_path, "journal", buggy, "-lpmem")
    done = crash_run(run_nearfar, program, checker, "--sarif", "found.sarif")
    assert done.code == 1, done
    finding = document(done)["findings"][0]
    assert finding["missing"] == "flush"
    assert finding["what"] == "entry 0 is torn"
    assert re.search(r"journal\.c:(18|19)$", finding["store"])
    assert finding["before"].endswith("journal.c:21")
    result = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"][0]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] in (18, 19)

    again = run_nearfar("crash", "replay", finding["image"])
    assert again.code == 1
    assert "entry 0 is torn" in again.stdout

    program = compile_c(tmp_path, "journal", buggy.replace("  // MEND\n", mend), "-lpmem")
    done = crash_run(run_nearfar, program, checker)
    assert (done.code, document(done)["states_left"]) == (0, 0), done


@needs_libpmem
def test_a_program_compiled_for_the_recorder(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    buggy, check, _ = blocks()
    checker = compile_c(tmp_path, "check", check)
    (tmp_path / "journal.c").write_text(buggy)
    subprocess.run(
        ["gcc", "-g", "-O1", "-fsanitize=thread", "-c", "journal.c"], cwd=tmp_path, check=True
    )
    library = str(shipped("libnearfar-crash-recorder.so"))
    subprocess.run(
        ["gcc", "journal.o", "-o", "journal", library, "-lpmem"], cwd=tmp_path, check=True
    )
    done = crash_run(run_nearfar, tmp_path / "journal", checker, "--recorder", "instrumented")
    assert done.code == 1, done
    finding = document(done)["findings"][0]
    assert finding["missing"] == "flush"
    assert re.search(r"journal\.c:(18|19)$", finding["store"])


@needs_libpmem
def test_each_failure_of_a_checker_is_told_as_what_it_is(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "journal", blocks()[0], "-lpmem")
    for command, failure, words in (
        ("sh -c 'kill -SEGV $$'", "crashed", "signal 11"),
        ("sh -c 'sleep 60'", "hung", "did not end within 200 ms"),
        ("sh -c 'echo no magic; exit 2'", "refused", "the image does not open: no magic"),
    ):
        done = crash_run(run_nearfar, program, command, "--budget", "2", "--time", "0.2")
        assert done.code == 1, done
        finding = document(done)["findings"][0]
        assert finding["failure"] == failure
        assert words in finding["what"]


@needs_libpmem
def test_a_program_that_is_killed_leaves_a_log_cut_short(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    buggy, check, _ = blocks()
    checker = compile_c(tmp_path, "check", check)
    killed = buggy.replace("  return 0;\n}\n", "  raise(9);\n}\n").replace(
        "#include <stdio.h>", "#include <stdio.h>\n#include <signal.h>"
    )
    program = compile_c(tmp_path, "journal", killed, "-lpmem")
    done = crash_run(run_nearfar, program, checker)
    assert "cut short" in done.stderr
    assert "ended with -9" in done.stderr


def test_what_cannot_be_run_or_read(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    run_nearfar("crash", "run", "--checker", "true", "--", "/no/such/program").assert_refused(2)
    run_nearfar("crash", "run", "--checker", "true", "--", "true").assert_refused(2)
    run_nearfar("crash", "replay", "no.image").assert_refused(2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    run_nearfar("crash", "check", "--structure", "map", "--images", "full").assert_refused(2)


@needs_libpmem
@pytest.mark.long
@pytest.mark.parametrize("bug", range(11))
def test_known_kinds_of_bugs_are_found_and_named(
    bug: int, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (Path(__file__).parent / "programs" / "intset.c").read_text()
    checker = compile_c(tmp_path, "check", text, "-DCHECK")
    program = compile_c(tmp_path, "intset", text, f"-DBUG={bug}", "-lpmem")
    done = crash_run(run_nearfar, program, checker, "--budget", "1500")
    found = document(done)
    if bug == 0:
        assert (done.code, found["states_left"]) == (0, 0), done
        return
    lines = [i for i, line in enumerate(text.splitlines(), 1) if re.search(rf"SITE {bug}\b", line)]
    named = {int(finding["store"].rpartition(":")[2]) for finding in found["findings"]}
    assert done.code == 1
    assert set(lines) & named, found["findings"]
