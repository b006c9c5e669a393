"""Everything at once in a heap that is near, and in one in shared memory (tests/programs/soak).

``make test-long`` runs it for an hour; ``NEARFAR_SOAK_SECONDS`` sets another time. A failure prints
what was wrong with the block, or, if a thread hangs, what all threads do and their stacks.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hmalloc_build import PRELOAD, PROGRAMS, clean_environment

IN_SHARED_MEMORY = {
    "NEARFAR_HMALLOC_DEFAULT": "far",
    "NEARFAR_HMALLOC_FAR": "shm:,capacity=128MiB",
}
HEAPS = {
    "near": {"NEARFAR_HMALLOC_NEAR": "dram,capacity=128MiB"},
    "in shared memory": IN_SHARED_MEMORY,
    "hardened in shared memory": {**IN_SHARED_MEMORY, "NEARFAR_HMALLOC_HARDEN": "all"},
    "copied to children, full to near": {
        "NEARFAR_HMALLOC_DEFAULT": "far",
        "NEARFAR_HMALLOC_FAR": "shm:,capacity=64MiB,fork=copy,overflow=spill:near",
        "NEARFAR_HMALLOC_NEAR": "dram,capacity=64MiB",
    },
}
LIMIT_S = 120  #: without a step of a thread
DONE = ("checked", "forks", "handler_forks", "threads", "loads", "signals", "full")
LEFT_BYTES = 16 << 20  #: caches of threads and of libc


@dataclass(frozen=True)
class Soak:
    """The program and its libraries."""

    program: Path
    libraries: list[Path]

    def start(
        self, heap: dict[str, str], seconds: int, limit_s: int = LIMIT_S, fault: str = "none"
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, str(seconds), str(limit_s), fault, *self.libraries],
            env={**clean_environment(), "LD_PRELOAD": str(PRELOAD), **heap},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[str], timeout: float) -> tuple[int, str, str]:
    """Exit code and streams; ends its children too, which keep a pipe open if they hang."""
    try:
        process.wait(timeout)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    return process.returncode, out, err


@pytest.fixture(scope="module")
def soak(tmp_path_factory: pytest.TempPathFactory) -> Soak:
    folder = tmp_path_factory.mktemp("soak")
    sources = sorted((PROGRAMS / "soak").glob("*.c"))
    library = PROGRAMS / "soak" / "library.c"
    compile_ = ["cc", "-O2", "-g", "-Wall", "-Werror", "-pthread"]
    program = folder / "soak"
    parts = [source for source in sources if source != library]
    subprocess.run([*compile_, "-rdynamic", *parts, "-o", program, "-ldl"], check=True)
    libraries = [folder / f"library-{i}.so" for i in range(4)]
    subprocess.run([*compile_, "-shared", "-fPIC", library, "-o", libraries[0]], check=True)
    for copy in libraries[1:]:
        shutil.copy(libraries[0], copy)
    return Soak(program, libraries)


def _run_all(soak: Soak, seconds: int) -> None:
    """All heaps at the same time, as more threads than CPUs find more."""
    running = {name: soak.start(heap, seconds) for name, heap in HEAPS.items()}
    ended = {name: _end(each, seconds + 3 * LIMIT_S) for name, each in running.items()}
    for name, (code, out, err) in ended.items():
        assert (code, err) == (0, ""), f"{name}: {code}\n{out}{err}"
        counts = {key: int(value) for key, value in (line.split() for line in out.splitlines())}
        assert [key for key in DONE if counts[key] == 0] == [], (name, counts)
        assert counts["left"] < LEFT_BYTES, (name, counts)


def test_twenty_seconds_of_everything_at_once(soak: Soak) -> None:
    _run_all(soak, 20)


@pytest.mark.long
def test_an_hour_of_everything_at_once(soak: Soak) -> None:
    _run_all(soak, int(os.environ.get("NEARFAR_SOAK_SECONDS", "3600")))


@pytest.mark.parametrize(
    ("fault", "report"),
    # One way in eight uses all bytes of the block of 100.
    [("byte", r"soak failed: byte 50 of a block of 1\d\d bytes"), ("hang", "")],
)
def test_the_soak_finds_a_changed_byte_and_a_hang(soak: Soak, fault: str, report: str) -> None:
    code, _, err = _end(soak.start(HEAPS["near"], 2, 3, fault), 120)
    assert code == -signal.SIGABRT
    assert re.search(report, err)
    if fault == "hang":
        assert "soak hangs: actor " in err
        assert ": churning\n" in err
        assert "(pause" in err, "no stacks"
