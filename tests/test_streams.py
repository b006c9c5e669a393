"""Standard streams that are closed, full or without a reader, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearfar.errors import ExitCode

NEARFAR = f"{sys.executable} -m nearfar.cli.app"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("verb", ["topo", "--help", "topo --json -", "trace flags"])
@pytest.mark.parametrize(
    ("output", "why"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")]
)
def test_an_output_that_cannot_be_written_is_one_message(
    verb: str, output: str, why: str, tmp_path: Path
) -> None:
    done = run(f"{NEARFAR} {verb} {output}", tmp_path)
    assert done.returncode == ExitCode.MACHINE
    assert done.stderr.startswith(f"nearfar: cannot write standard output: {why}\n  next: ")
    assert done.stderr.count("\n") == 2


@pytest.mark.parametrize("error", ["2>&-", "2>/dev/full"])
def test_an_error_stream_that_cannot_be_written_keeps_the_exit_code_and_the_output_clean(
    error: str, tmp_path: Path
) -> None:
    done = run(f"{NEARFAR} show nonsense {error}", tmp_path)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")


def test_a_reader_that_exits_ends_the_verb_as_sigpipe_would(tmp_path: Path) -> None:
    done = run(f"{NEARFAR} topo | true", tmp_path)
    assert (done.returncode, done.stderr) == (ExitCode.READER_GONE, "")


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_program_runs_with_closed_streams(closed: str, tmp_path: Path) -> None:
    done = run(f"{NEARFAR} run --tier far=dram -- true {closed}", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os; os.write(2, ' '.join(map(os.readlink, ['/proc/self/fd/0', '/proc/self/fd/1']))"
        ".encode())"
    )
    program = f"{sys.executable} program.py"
    shown = run(f"{NEARFAR} run --tier far=shm: -- {program} <&- >&-", tmp_path)
    assert (shown.returncode, shown.stderr) == (0, f"{os.devnull} {os.devnull}")


def test_a_binary_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(bytes(range(256)))
    done = run(f"{NEARFAR} run --plan plan -- true", tmp_path)
    assert done.returncode == ExitCode.BAD_INPUT
    assert done.stderr.startswith("nearfar: cannot read plan: it is a binary file\n  next: ")


def test_output_in_a_terminal_without_unicode_is_escaped(tmp_path: Path) -> None:
    done = run(f"PYTHONIOENCODING=ascii {NEARFAR} --help", tmp_path)
    assert done.returncode == 0
    assert "a bug in nearfar" not in done.stderr
