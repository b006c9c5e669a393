"""``nearfar advise`` gives no verdict on a run that failed or that it has not seen."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar
from small_host import write_small_host
from tracing import needs_emulator

pytestmark = needs_emulator

BUSY = """#include <stdlib.h>
int main(void) {
  volatile char* p = malloc(1 << 22);
  for (int round = 0; round < 400; ++round)
    for (int i = 0; i < 1 << 22; i += 64) p[i] += 1;
  return 0;
}
"""
SERVICE = """#include <stdlib.h>
#include <unistd.h>
int main(void) {
  volatile char* p = malloc(1 << 24);
  for (;;) {
    for (int i = 0; i < 1 << 24; i += 64) p[i] += 1;
    usleep(50000);
  }
}
"""


#: The emulator's -E separates variables by commas, so that a program started so is not followed.
NOT_FOLLOWED = "LD_LIBRARY_PATH=a,b"


@pytest.fixture
def host(tmp_path: Path) -> tuple[str, ...]:
    return ("--near", "ddr4", "--host", str(write_small_host(tmp_path / "small.toml")))


def compiled(folder: Path, name: str, source: str) -> str:
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["cc", "-O1", "-o", str(folder / name), f"{folder / name}.c"], check=True)
    return f"./{name}"


def test_a_program_that_fails_gets_no_verdict(
    host: tuple[str, ...], tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar("advise", "--emulate", *host, "--", "false")
    assert done.code == 2
    assert "false exited with 1" in done.stderr
    assert "--ignore-failure" in done.stderr
    assert done.stdout == ""
    done = run_nearfar(
        "advise", "--emulate", *host, "--ignore-failure", "--json", "-", "--", "false"
    )
    assert done.code == 0, done.stderr
    assert any("exited with 1" in warning for warning in json.loads(done.stdout)["warnings"])


def test_a_program_that_ctrl_c_ends_is_no_failure_of_its_own(
    host: tuple[str, ...], run_nearfar: RunNearfar
) -> None:
    stopped = ("--", "sh", "-c", "kill -INT $$")
    done = run_nearfar("advise", *host, *stopped)
    assert (done.code, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-2].startswith("nearfar: interrupted: sh was ended by SIGINT")
    assert "--ignore-failure" in done.stderr


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_sqlite_that_cannot_open_its_file_gets_no_verdict(
    host: tuple[str, ...], tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        "advise", "--emulate", *host, "--", "sqlite3", str(tmp_path / "none" / "db"), "select 1"
    )
    assert done.code == 2
    assert "sqlite3 exited with" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("how", ["./busy; true", "exec ./busy", "./busy & wait"])
def test_programs_that_the_program_starts_are_traced(
    how: str, host: tuple[str, ...], tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    compiled(tmp_path, "busy", BUSY)
    done = run_nearfar("advise", "--emulate", *host, "--json", "found.json", "--", "sh", "-c", how)
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["unseen_share"] == 0
    assert found["programs"][0]["path"] == str(tmp_path / "busy")
    assert any(s["kind"] == "heap" and "busy" in s["at"] for s in found["sites"]), found["sites"]
    assert any("in fractions of the CPU time: busy " in text for text in found["warnings"])
    assert sum(each.get("cpu_share", 0) for each in found["programs"]) == pytest.approx(1, abs=0.02)


def test_a_program_whose_work_cannot_be_traced_gets_no_verdict(
    host: tuple[str, ...], tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    compiled(tmp_path, "busy", BUSY)
    done = run_nearfar(
        "advise", "--emulate", *host, "--", "sh", "-c", f"{NOT_FOLLOWED} ./busy; true"
    )
    assert done.code == 2
    said = " ".join(done.stderr.split())
    assert "of the CPU time of sh goes to programs that it starts (exec) and that cannot" in said
    assert "name the program that does the work" in said
    assert done.stdout == ""


def test_the_unseen_part_of_the_run_is_in_the_first_line(
    host: tuple[str, ...], tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    """The program does most of the work itself, and starts another for some of it."""
    source = BUSY.replace("400", "1500").replace(
        "return 0;", f'return system("{NOT_FOLLOWED} ./other");'
    )
    compiled(tmp_path, "most", source)
    compiled(tmp_path, "other", BUSY.replace("400", "1"))
    done = run_nearfar("advise", "--emulate", *host, "--json", "found.json", "--", "./most")
    assert done.code == 0, done.stderr
    assert "of the CPU time was in child programs that cannot be traced" in " ".join(
        done.stdout.split()
    )
    found = json.loads((tmp_path / "found.json").read_text())
    assert 0 < found["unseen_share"] <= 0.25


def test_a_service_is_stopped_and_judged_by_its_cpu_time(
    host: tuple[str, ...], tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    compiled(tmp_path, "service", SERVICE)
    done = run_nearfar(
        "advise", "--emulate", *host, "--time", "2", "--json", "found.json", "--", "./service"
    )
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert any("reached the time limit and was stopped" in text for text in found["warnings"])
    assert found["cpu_near_s"] < found["time_near_s"]
    assert found["slowdown_all_far"] > 1.02
    wall = found["time_all_far_s"] / found["time_near_s"]
    assert 1 < wall < found["slowdown_all_far"]
    assert "It is off the CPU for" in done.stdout
