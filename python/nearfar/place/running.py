"""Starts a program and stands aside: signals go on to it, and its end is ours.

The program shares our process group, so that a terminal treats the two as one: Ctrl-C reaches both,
and only signals that were sent to us alone are passed on. Job control (Ctrl-Z) is left to the
terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import Any

#: What a shell returns for a program that is there but cannot be started, and for one that is not.
CANNOT_START, NOT_FOUND = 126, 127

_PASSED_ON = frozenset(
    {
        signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
        signal.SIGUSR2, signal.SIGALRM,
    }
)  # fmt: skip
#: ``si_code`` of a signal that a process sent (kill, sigqueue, tkill); the kernel's are above 0.
_MOST_OF_A_PROCESS = 0
#: Wakes the one who waits for the program's end.
_ENDED = signal.SIGCHLD
#: What Python ignores and programs expect to kill them.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class StartError(Exception):
    """The program could not be started; ``code`` is what a shell would return."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    aside: bool = False,
    alone: bool = False,
) -> tuple[int, int]:
    """Run a program to its end. Returns its process number, and its exit code as a shell tells it:
    128 and the signal's number for one that was killed.

    ``aside``: what it writes to standard output goes to standard error. ``alone``: it is dropped,
    and there is nothing on its standard input. Raises StartError.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON | {_ENDED})
    try:
        child = _start(arguments, environment, before, _files(aside, alone))
        return child, _wait(child)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _files(aside: bool, alone: bool) -> list[tuple[Any, ...]]:
    """What is done to a child's files, as posix_spawn takes it."""
    if alone:
        return [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]  # fmt: skip
    return [(os.POSIX_SPAWN_DUP2, 2, 1)] if aside else []


def _start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    mask: set[int | signal.Signals],
    actions: Sequence[tuple[Any, ...]],
) -> int:
    # Handlers of ours are reset by exec; what we ignore would stay ignored.
    try:
        return os.posix_spawnp(
            arguments[0], list(arguments), dict(environment), file_actions=actions,
            setsigmask=mask, setsigdef=_IGNORED_BY_PYTHON,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise StartError(NOT_FOUND, error.strerror or "not found") from None
    except OSError as error:
        raise StartError(CANNOT_START, error.strerror or str(error)) from None


def _wait(child: int) -> int:
    handle = os.pidfd_open(child)  # a number could be another's by the time a signal comes
    statuses: list[int] = []
    us = threading.get_ident()

    def reap() -> None:
        statuses.append(os.waitpid(child, 0)[1])
        # To this thread, which has it blocked: the kernel's own goes to the process, and is lost
        # where another thread ignores it.
        signal.pthread_kill(us, _ENDED)

    reaper = threading.Thread(target=reap, daemon=True)
    reaper.start()
    try:
        while not statuses:
            told = signal.sigwaitinfo(_PASSED_ON | {_ENDED})
            if told.si_signo in _PASSED_ON and told.si_code <= _MOST_OF_A_PROCESS:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, told.si_signo)
        reaper.join()
    finally:
        os.close(handle)
    code = os.waitstatus_to_exitcode(statuses[0])
    return code if code >= 0 else 128 - code
