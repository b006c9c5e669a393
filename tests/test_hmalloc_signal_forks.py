"""fork() in a signal handler that interrupts malloc(), free() and fork()."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmalloc_build import compile_c, preloaded

TIERS = {
    "near": {},
    "in shared memory": {
        "NEARFAR_HMALLOC_FAR": "shm:,capacity=256MiB",
        "NEARFAR_HMALLOC_DEFAULT": "far",
    },
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("signals"), "signal_forks")


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("settings", TIERS.values(), ids=TIERS.keys())
def test_forks_in_a_handler_do_not_hang(
    settings: dict[str, str], threads: int, program: Path
) -> None:
    """A hang ends the program by SIGALRM. glibc's own malloc hangs here with threads."""
    done = preloaded(program, "100", str(threads), "2000", settings=settings)
    assert (done.returncode, done.stdout) == (0, "all forks well\n"), done.stderr


def test_a_handler_that_interrupts_libc_within_fork_does_not_hang(program: Path) -> None:
    """glibc holds a lock while it reads the fork handlers, here for most of a fork."""
    done = preloaded(program, "200", "1", "2000", "20000")
    assert (done.returncode, done.stdout) == (0, "all forks well\n"), done.stderr


def test_threads_fork_while_a_handler_that_interrupts_malloc_forks(program: Path) -> None:
    """The handler's fork waits for a lock of libc, whose holder forks and waits for the heap's."""
    done = preloaded(program, "500", "2", "500000", "0", "2")
    assert (done.returncode, done.stdout) == (0, "all forks well\n"), done.stderr


@pytest.mark.long
@pytest.mark.parametrize("settings", TIERS.values(), ids=TIERS.keys())
def test_two_hundred_runs_do_not_hang(settings: dict[str, str], program: Path) -> None:
    for _ in range(200):
        done = preloaded(program, "20", "0", "2000", settings=settings)
        assert (done.returncode, done.stdout) == (0, "all forks well\n"), done.stderr
