"""The recorders of ``nearfar crash run``: a recorded program does what it does unrecorded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import PROGRAMS, crash_run, document, needs_libpmem
from nearfar.process.helpers import shipped
from nearfar.verify.recorder import RECORDER, record

pytestmark = needs_libpmem

RECORDERS = ("preload", "instrumented")


def compiled_for(recorder: str, folder: Path, name: str, *flags: str) -> Path:
    """A program of tests/programs as the recorder requires it."""
    text = (PROGRAMS / f"{name}.c").read_text()
    if recorder == "preload":
        return compile_c(folder, name, text, *flags, "-lpmem")
    source, part = folder / f"{name}.c", folder / f"{name}.o"
    source.write_text(text)
    subprocess.run(
        ["gcc", "-g", "-O1", "-fsanitize=thread", "-c", source, "-o", part, *flags], check=True
    )
    program = folder / name
    library = str(shipped(RECORDER))
    subprocess.run(["gcc", part, "-o", program, library, "-lpmem"], check=True)
    return program


@pytest.mark.parametrize("recorder", RECORDERS)
def test_overlapping_moves_give_the_bytes_of_the_plain_run(recorder: str, tmp_path: Path) -> None:
    program = compiled_for(recorder, tmp_path, "moves", "-fno-builtin")
    plain, recorded = tmp_path / "plain", tmp_path / "recorded"
    subprocess.run([program, plain], check=True)
    assert record([str(program), str(recorded)], tmp_path / "log", recorder) == 0
    assert recorded.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_program_may_close_descriptors_that_it_did_not_open(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "pool_descriptors")
    flags = ("--checker", "true", "--budget", "10", "--json", "-", "--recorder", recorder)
    pool = str(tmp_path / "pool")
    done = run_nearfar("crash", "run", *flags, "--", str(program), pool, str(tmp_path))
    found = document(done)
    assert found["stores"] == 4096


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_signal_handler_may_store_to_the_pool(recorder: str, tmp_path: Path) -> None:
    program = compiled_for(recorder, tmp_path, "signals")
    pool = tmp_path / "pool"
    assert record([str(program), str(pool)], tmp_path / "log", recorder) == 0
    assert int.from_bytes(pool.read_bytes()[64:72], "little") == 300


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_pool_that_cannot_be_mapped_again_ends_the_recording_not_the_program(
    recorder: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for(recorder, tmp_path, "mapped_twice")
    done = crash_run(run_nearfar, program, "true", "--recorder", recorder)
    assert "recording ends: the pool cannot be mapped a second time" in done.stderr
    assert done.code == 3, done
    assert document(done)["verdict"] == "inconclusive"
