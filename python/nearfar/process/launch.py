"""Start a program, forward signals to it, and return its exit code.

The program shares the process group, so that a terminal treats both as one: Ctrl-C reaches both,
and only signals sent to this process alone are forwarded. Job control (Ctrl-Z) is left to the
terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Exit codes of a shell for a program that cannot be started, and for one that does not exist.
CANNOT_START, NOT_FOUND = 126, 127

_PASSED_ON = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
    }
)
#: Largest ``si_code`` of a signal that a process sent (kill, sigqueue, tkill); the kernel's are >0.
_MOST_OF_A_PROCESS = 0
#: Seconds between SIGTERM and SIGKILL after the time limit.
_GRACE_S = 5.0
#: Wakes the thread that waits for the program's end.
_ENDED = signal.SIGCHLD
#: Signals that Python ignores and that programs expect to be fatal.
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
    limit_s: float | None = None,
    stdin: str = os.devnull,
    started: Callable[[int], None] | None = None,
) -> tuple[int, int]:
    """Run a program to its end. Returns its PID and its exit code in shell convention: 128 plus the
    signal number for a killed program.

    ``aside``: redirect its standard output to standard error. ``alone``: discard its output
    and give it the file ``stdin`` as standard input. ``limit_s``: after this time it gets SIGTERM,
    then SIGKILL. ``started`` is called with the PID once the program runs; threads that it starts
    receive no signals. Raises StartError.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON | {_ENDED})
    try:
        child = _start(arguments, environment, before, _files(aside, alone, stdin))
        if started is not None:
            started(child)
        return child, _wait(child, limit_s)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _files(aside: bool, alone: bool, stdin: str) -> list[tuple[Any, ...]]:
    """File actions of the child, as posix_spawn takes them."""
    if alone:
        return [
            (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
    return [(os.POSIX_SPAWN_DUP2, 2, 1)] if aside else []


def _start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    mask: set[int | signal.Signals],
    actions: Sequence[tuple[Any, ...]],
) -> int:
    # exec resets handlers of this process; ignored signals would stay ignored.
    try:
        return os.posix_spawnp(
            arguments[0],
            list(arguments),
            dict(environment),
            file_actions=actions,
            setsigmask=mask,
            setsigdef=_IGNORED_BY_PYTHON,
        )
    except FileNotFoundError as error:
        raise StartError(NOT_FOUND, error.strerror or "not found") from None
    except OSError as error:
        raise StartError(CANNOT_START, error.strerror or str(error)) from None


def _wait(child: int, limit_s: float | None) -> int:
    handle = os.pidfd_open(child)  # a PID could be reused by the time a signal arrives
    statuses: list[int] = []
    us = threading.get_ident()

    def reap() -> None:
        statuses.append(os.waitpid(child, 0)[1])
        # Sends SIGCHLD to this thread, which blocks it. The kernel sends its own to the process,
        # where it is lost if another thread ignores it.
        signal.pthread_kill(us, _ENDED)

    reaper = threading.Thread(target=reap, daemon=True)
    reaper.start()
    timers = _timers(handle, limit_s)
    try:
        while not statuses:
            received = signal.sigwaitinfo(_PASSED_ON | {_ENDED})
            if received.si_signo in _PASSED_ON and received.si_code <= _MOST_OF_A_PROCESS:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, received.si_signo)
        reaper.join()
    finally:
        for timer in timers:
            timer.cancel()
            timer.join()
        os.close(handle)
    code = os.waitstatus_to_exitcode(statuses[0])
    return code if code >= 0 else 128 - code


def _timers(handle: int, limit_s: float | None) -> list[threading.Timer]:
    """Timers that end a program after its time limit."""
    if limit_s is None:
        return []

    def send(number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)

    timers = [
        threading.Timer(after, send, [number])
        for after, number in ((limit_s, signal.SIGTERM), (limit_s + _GRACE_S, signal.SIGKILL))
    ]
    for timer in timers:
        timer.start()
    return timers
