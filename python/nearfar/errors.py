"""Errors with a cause and a next step, each with its exit code."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of a verb."""

    OK = 0
    VIOLATION = 1
    BAD_INPUT = 2
    MACHINE = 3
    NOISY = 4
    INTERRUPTED = 130
    READER_GONE = 141


class NearfarError(Exception):
    """An expected failure: shown as one message, never as a traceback."""

    exit_code = ExitCode.VIOLATION

    def __init__(self, what: str, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step


class BadInputError(NearfarError):
    """The command line, or a file it names, is wrong."""

    exit_code = ExitCode.BAD_INPUT


class MachineError(NearfarError):
    """This machine cannot do it; the next step names an alternative."""

    exit_code = ExitCode.MACHINE


class NoisyError(NearfarError):
    """Under ``--strict``: the figures were disturbed."""

    exit_code = ExitCode.NOISY


class StoppedProgramError(NearfarError):
    """The program that is observed was ended by Ctrl-C, or by SIGTERM or SIGHUP."""

    exit_code = ExitCode.INTERRUPTED


class ReaderGoneError(NearfarError):
    """The reader of standard output has exited; there is nothing to report to it."""

    exit_code = ExitCode.READER_GONE

    def __init__(self) -> None:
        super().__init__("")


#: Codes of ``NativeError`` that are the caller's mistake; all others are the machine's.
_CALLERS_MISTAKE = frozenset({"bad_input", "not_found", "exists"})


def from_native(error: BaseException) -> NearfarError:
    """Turn a ``NativeError(code, what, next_step, errno)`` into the error of its exit code."""
    code, what, next_step, _errno = error.args
    kind = BadInputError if code in _CALLERS_MISTAKE else MachineError
    return kind(what, next_step)
