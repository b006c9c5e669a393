"""Traces that end early, are damaged, or cannot begin."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from nearfar.errors import MachineError
from nearfar.profiles import load_host
from nearfar.tracing import recording
from nearfar.tracing.caches import caches_of
from nearfar.tracing.recording import NewTrace
from tracing import EMULATOR_WORKS, SITES, needs_emulator, stats, traced

RANDOM = """
#include <stdlib.h>
int main(void) {
  unsigned long *a = calloc(1, 64 << 20), r = 1;
  for (long i = 0; i < 3000000; ++i) {
    r = r * 6364136223846793005ul + 1442695040888963407ul;
    a[r >> 41] += r;
  }
  return a[1] == 7;
}
"""


@needs_emulator
def test_a_full_disk_leaves_a_trace(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "random", RANDOM)
    traced = f"{sys.executable} -m nearfar.cli.app trace -o T --after l1 -- {program}"
    limited = f"ulimit -f 9000; exec {traced}"
    done = subprocess.run(
        ["bash", "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done
    assert "could not be written to its end" in done.stderr
    assert "Traceback" not in done.stderr
    found = stats(run_nearfar, tmp_path / "T")
    assert not found["complete"]
    assert "cut short" in found["ending"]
    assert found["records"] > 0


@needs_emulator
def test_losses_of_a_stopped_run_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that is stopped does not fail, and says nothing about a part of its instructions."""
    counted = {
        "totals": {"instructions": 0, "loads": 0},
        "float_instructions": 0,
        "executed": 2,
        "lost_threads": 3,
        "lost_entries": 4,
    }
    monkeypatch.setattr(recording, "_run", lambda *_: (128 + signal.SIGTERM, counted))
    caches = caches_of(load_host("xeon-5218r"), {})
    for limit_s, expected in ((0.0, 2), (None, 5)):
        done = recording.record(
            ["true"],
            tmp_path / f"T{limit_s}",
            caches,
            host="xeon-5218r",
            after=caches.last,
            prefetch=True,
            limit_s=limit_s,
        )
        assert done.cut is (limit_s is not None)
        notes = done.notes[len(caches.notes) :]
        assert len(notes) == expected
        assert "3 threads" in notes[-2]
        assert "4 accesses" in notes[-1]


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


ENDLESS = """
#include <stdlib.h>
int main(void) {
  volatile char *a = calloc(1, 64 << 20);
  for (;;) for (long i = 0; i < 64 << 20; i += 64) a[i] = 1;
}
"""


@needs_emulator
def test_an_interrupt_leaves_a_whole_trace(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "endless", ENDLESS)
    trace = tmp_path / "T"
    process = subprocess.Popen(
        [sys.executable, "-m", "nearfar.cli.app", "trace", "-o", str(trace), "--", str(program)],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: trace.exists() and trace.stat().st_size > 2000)
    finally:
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    found = stats(run_nearfar, trace)
    assert found["complete"]
    assert found["records"] > 0


FINITE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments) {
  volatile char *a = calloc(1, 64 << 20);
  while (access(arguments[1], F_OK) != 0)
    for (long i = 0; i < 64 << 20; i += 64) a[i] = 1;
  for (long i = 0; i < 64 << 20; i += 64) a[i] = 2; /* more than the ring holds */
  return fclose(fopen(arguments[2], "w"));
}
"""


@needs_emulator
def test_nothing_but_the_trace_is_left_where_nearfar_was_killed(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "finite", FINITE)
    trace, killed, ended = (tmp_path / name for name in ("T", "killed", "ended"))
    rings = set(Path("/dev/shm").glob("nearfar-trace*"))
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "nearfar.cli.app",
            "trace",
            "-o",
            str(trace),
            "--after",
            "l1",
            "--",
            str(program),
            str(killed),
            str(ended),
        ],
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    )
    try:
        wait_until(lambda: trace.exists() and trace.stat().st_size > 2000)
    finally:
        process.kill()
        process.wait(timeout=600)
        killed.touch()
    wait_until(ended.exists)  # unrecorded
    assert list((tmp_path / "temporary").iterdir()) == []
    assert set(Path("/dev/shm").glob("nearfar-trace*")) <= rings
    found = stats(run_nearfar, trace)
    assert "cut short" in found["ending"]
    assert found["records"] > 0


def test_a_trace_that_cannot_have_its_name_is_refused(tmp_path: Path) -> None:
    with NewTrace(tmp_path / "T") as trace:
        (tmp_path / "T").mkdir()
        with pytest.raises(MachineError, match=r"cannot write .*T: Is a directory"):
            trace.keep()
    assert [path.name for path in tmp_path.iterdir()] == ["T"]


def record_blocks(trace: bytes) -> list[int]:
    """Offsets of the blocks of records, by the heads that docs/formats/trace.md describes."""
    (fields,) = struct.unpack_from("<12xI", trace)
    at, found = 20 + fields, []
    while at < len(trace) - 16:
        kind, stored = struct.unpack_from("<4xB3xI", trace, at)
        if kind == 1:
            found.append(at)
        at += 32 + stored
    return found


@needs_emulator
def test_a_cut_or_damaged_trace_is_read_up_to_there(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "sites", SITES)
    whole = traced(run_nearfar, tmp_path / "T", "--after", "l1", "--", program)
    contents = (tmp_path / "T").read_bytes()
    blocks = record_blocks(contents)
    middle = blocks[len(blocks) // 2] + 40
    (tmp_path / "cut").write_bytes(contents[:middle])
    damaged = bytearray(contents)
    damaged[middle] ^= 16
    (tmp_path / "damaged").write_bytes(damaged)
    for name, word in (("cut", "cut short"), ("damaged", "damaged")):
        done = run_nearfar("trace", "stats", name)
        assert done.code == 0
        assert f"the trace is {word} at offset" in done.stderr
        found = stats(run_nearfar, tmp_path / name)
        assert 0 < found["records"] < whole["records"]
        assert 0 < found["loads"] <= whole["loads"]
        export = ("trace", "export", name, "--to", "dramsim3", "-o", f"{name}.txt", "--truncated")
        done = run_nearfar(*export)
        assert f"the trace is {word} at offset" in done.stderr
    (tmp_path / "other").write_bytes(b"something else")
    run_nearfar("trace", "stats", "other").assert_refused(2, "'other' is not a trace")
    run_nearfar("trace", "stats", "nowhere").assert_refused(2, "nowhere")


def test_wrong_use_is_refused(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("not a trace")
    for arguments, fragment in (
        (("-o", "T", "--", "no-such-program"), "no program no-such-program"),
        (("-o", "mine", "--", "true"), "mine exists"),
        (("-o", "T", "--l1", "32KiB", "--", "true"), "invalid cache '32KiB'"),
        (("-o", "T", "--l1", "48KiB/8", "--", "true"), "invalid first level of 96 sets of 8 ways"),
        (("-o", "T", "--llc", "none", "--after", "llc", "--", "true"), "no third cache level"),
        (("-o", "T", "--host", "nobodys", "--", "true"), "nobodys"),
    ):
        if EMULATOR_WORKS:
            run_nearfar("trace", *arguments).assert_refused(2, fragment)
    if EMULATOR_WORKS:
        run_nearfar("trace", "-o", "nowhere/T", "--", "true").assert_refused(3, "cannot write")
    assert (tmp_path / "mine").read_text() == "not a trace"
    done = run_nearfar("trace", "-o", "T", "--", "true", env={**os.environ, "PATH": str(tmp_path)})
    done.assert_refused(3, "qemu-user")
