"""Traces of programs whose processes are killed while they are traced."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from nearfar.tracing.recording import instrumentation_flags
from tracing import needs_emulator, stats

#: Children that miss the first level with each access, so that the ring is full, are killed at
#: different times; the parent then writes more lines than the ring holds.
KILLS_CHILDREN = """
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { BYTES = 32 << 20 };
int main(void) {
  volatile char *a = calloc(1, BYTES);
  for (int i = 0; i < 12; ++i) {
    pid_t children[2];
    for (int c = 0; c < 2; ++c)
      if ((children[c] = fork()) == 0)
        for (;;) for (long at = 0; at < BYTES; at += 64) a[at] += 1;
    usleep(20000 + 7000 * i);
    for (int c = 0; c < 2; ++c) kill(children[c], SIGKILL);
    for (int c = 0; c < 2; ++c) waitpid(children[c], 0, 0);
  }
  for (long at = 0; at < BYTES; at += 64) a[at] += 1;
  return 0;
}
"""


def kills_children(folder: Path, recorder: str) -> Path:
    if recorder == "qemu":
        return compile_c(folder, "kills", KILLS_CHILDREN)
    return compile_c(folder, "kills", KILLS_CHILDREN, *instrumentation_flags().split())


@needs_emulator
@pytest.mark.parametrize("recorder", ["qemu", "instrumented"])
def test_a_program_that_kills_its_children_is_traced_to_its_end(
    run_nearfar: RunNearfar, tmp_path: Path, recorder: str
) -> None:
    program = kills_children(tmp_path, recorder)
    done = run_nearfar(
        "trace",
        "-o",
        "T",
        "--after",
        "l1",
        "--recorder",
        recorder,
        "--",
        str(program),
        cwd=tmp_path,
        timeout=120,
    )
    assert done.code == 0, done
    found = stats(run_nearfar, tmp_path / "T")
    assert found["complete"]
    assert found["stores"] >= 32 * 2**20 // 64


@needs_emulator
@pytest.mark.parametrize("quiet", [[], ["-q"]])
@pytest.mark.parametrize(
    ("script", "code", "how"),
    [
        ("exit 7", 7, "exited with 7"),
        ("kill -SEGV $$", 139, "was ended by SIGSEGV"),
        ("kill -INT $$", 130, "was ended by SIGINT"),
    ],
)
def test_how_the_program_ended_is_returned_reported_and_kept(
    run_nearfar: RunNearfar, tmp_path: Path, script: str, code: int, how: str, quiet: list[str]
) -> None:
    done = run_nearfar(
        "trace", "-o", "T", "--after", "l1", *quiet, "--", "/bin/dash", "-c", script, cwd=tmp_path
    )
    assert done.code == code, done
    assert f"/bin/dash {how}" in done.stderr
    assert stats(run_nearfar, tmp_path / "T")["exit_code"] == code
    assert f"the program {how}" in run_nearfar("trace", "stats", "T").stderr
    assert f"the traced program {how}" in run_nearfar("sim", "T", "--quiet").stderr


@needs_emulator
def test_a_program_that_succeeds_is_traced_without_a_warning(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("trace", "-o", "T", "--after", "l1", "-q", "--", "/bin/dash", "-c", "exit 0")
    assert (done.code, done.stderr) == (0, "")


@needs_emulator
def test_a_trace_that_exists_is_not_overwritten(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    command = ["trace", "-o", "T", "-q", "--after", "l1", "--", "/bin/true"]
    assert run_nearfar(*command).code == 0
    before = (tmp_path / "T").read_bytes()
    run_nearfar(*command).assert_refused(2, "T exists")
    assert (tmp_path / "T").read_bytes() == before
