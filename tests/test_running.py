"""Programs run by ``nearfar run``: their ends, their signals, and those that take no library."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearfar.place.statistics_files import read_statistics
from nearfar.process.elf import ignores_preload
from nearfar.process.launch import StartError, run
from nearfar.process.program_file import find_program

#: Runs a command as ``nearfar run`` does, and ends with its code.
_RUNNER = (
    "import os, sys\n"
    "from nearfar.process.launch import run\n"
    "sys.exit(run(sys.argv[1:], os.environ)[1])\n"
)
#: Says that it is ready, then counts the signals that reach it, for as long as a second is quiet.
_COUNTER = (
    "import signal, time\n"
    "seen = []\n"
    "for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):\n"
    "    signal.signal(s, lambda number, frame: seen.append(number))\n"
    "print('ready', flush=True)\n"
    "end = time.monotonic() + 600\n"
    "while not seen and time.monotonic() < end: time.sleep(0.05)\n"
    "time.sleep(0.7)\n"
    "print('seen', *seen, flush=True)\n"
)


def shell(command: str) -> int:
    return run(["sh", "-c", command], os.environ)[1]


@pytest.mark.parametrize("code", [0, 1, 2, 125, 255])
def test_the_exit_code_is_the_programs(code: int) -> None:
    assert shell(f"exit {code}") == code


@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM", "PIPE", "INT"])
def test_a_program_that_a_signal_killed(name: str) -> None:
    assert shell(f"kill -{name} $$") == 128 + getattr(signal, f"SIG{name}")


def test_children_of_the_program_do_not_end_it() -> None:
    assert shell("sh -c 'exit 3' & sleep 0.1; sh -c 'exit 4'; wait; exit 5") == 5


def test_the_mask_of_signals_is_as_it_was() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert shell("true") == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_programs_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(StartError) as error:
        run([str(tmp_path / "missing")], os.environ)
    assert error.value.code == 127
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for file in (plain, tmp_path):
        with pytest.raises(StartError) as error:
            run([str(file)], os.environ)
        assert error.value.code == 126


def runner(*command: str) -> list[str]:
    return [sys.executable, "-c", _RUNNER, *command]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_sent_to_us_alone_is_passed_on_once(number: signal.Signals) -> None:
    command = runner(sys.executable, "-c", _COUNTER)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.stdout.read() == f"seen {int(number)}\n".encode()
        assert child.wait(600) == 0


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be had here: {error}")
    yield ours, theirs
    os.close(ours)


def read_until(fd: int, wanted: bytes) -> bytes:
    seen = b""
    end = time.monotonic() + 600
    while wanted not in seen and time.monotonic() < end:
        try:
            seen += os.read(fd, 4096)
        except OSError:
            break
    return seen


def test_ctrl_c_at_a_terminal_reaches_the_program_once(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    child = subprocess.Popen(
        runner(sys.executable, "-c", _COUNTER), stdin=theirs, preexec_fn=lambda: os.login_tty(0)
    )
    os.close(theirs)
    read_until(ours, b"ready")
    os.write(ours, b"\x03")
    assert b"seen 2\r" in read_until(ours, b"seen 2\r")
    assert child.wait(600) == 0


@pytest.fixture(scope="module")
def static_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", folder / "prog", folder / "main.c"], check=True)
    return folder / "prog"


def test_plain_programs_and_scripts_take_a_library(tmp_path: Path) -> None:
    for name in ("sh", "python3", "git"):
        if file := find_program(name):
            assert ignores_preload(file) == ""
    for line in ("#!/bin/sh", "#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -B", "", "#!"):
        script = tmp_path / "script"
        script.write_text(f"{line}\n")
        assert ignores_preload(script) == ""


def test_static_programs_are_reported_through_scripts_too(
    static_program: Path, tmp_path: Path
) -> None:
    assert "statically" in ignores_preload(static_program)
    script = tmp_path / "script"
    script.write_text(f"#!{static_program}\n")
    assert "statically" in ignores_preload(script)


def test_setuid_programs_are_reported(static_program: Path, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file to another user")
    copy = Path(shutil.copy(shutil.which("sh") or "/bin/sh", tmp_path / "raised"))
    os.chown(copy, 65534, 65534)
    copy.chmod(0o4755)
    assert "raised privileges" in ignores_preload(copy)
    copy.chmod(0o2755)
    assert "raised privileges" in ignores_preload(copy)
    copy.chmod(0o755)
    assert ignores_preload(copy) == ""
    os.chown(copy, 0, 0)
    copy.chmod(0o4755)  # we are root anyway
    assert ignores_preload(copy) == ""


def test_other_files_are_no_reason_to_complain(tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(b"\x7fELF\x02")
    assert ignores_preload(cut) == ""
    assert ignores_preload(tmp_path / "missing") == ""
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(100))
    assert "64-bit x86" in ignores_preload(foreign)


ACCOUNTS = """hmalloc-stats 1
process 12
tier.near.allocations 7
tier.near.live_bytes 64
tier.far.allocations 3
thread.12.name main_thread
thread.12.near.allocations 7
"""


def test_accounts_are_read_and_cut_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "12").write_text(ACCOUNTS)
    (tmp_path / "9").write_text(ACCOUNTS.replace("process 12", "process 9"))
    (tmp_path / "13").write_text(ACCOUNTS[:-4])
    (tmp_path / "14").write_text("")
    found = read_statistics(tmp_path, 12)
    assert [process.process for process in found] == [12, 9]
    assert found[0].tiers == {
        "near": {"allocations": 7, "live_bytes": 64},
        "far": {"allocations": 3},
    }
    assert found[0].threads[0].name == "main_thread"
    assert found[0].threads[0].tiers == {"near": {"allocations": 7}}
