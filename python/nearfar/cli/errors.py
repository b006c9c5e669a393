"""Errors of a verb: the message on standard error, and the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from typer.exceptions import TyperException

from nearfar.errors import ExitCode, MachineError, NearfarError, from_native

#: Packages of the libraries that the native core links to: a wheel does not include them.
_LINKED = "libhwloc15 libpfm4 libpmemobj1 liburing2 libzstd1"


def exit_code_of(work: Callable[[], int], typed_verb: Callable[[], str]) -> int:
    """Run ``work`` and return its exit code; print an error with the name of ``typed_verb``."""
    try:
        return work()
    except TyperException as error:
        return _show_usage(error, typed_verb)
    except NearfarError as error:
        return _show(error)
    except KeyboardInterrupt:
        print("nearfar: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        return _code_of_exit(end)
    except Exception as error:
        return _show_unexpected(error)


def _show(error: NearfarError) -> int:
    if error.what:
        print(f"nearfar: {error.what}", file=sys.stderr)
    if error.next_step:
        print(f"  next: {error.next_step}", file=sys.stderr)
    return error.exit_code


def _show_usage(error: TyperException, typed_verb: Callable[[], str]) -> int:
    context = getattr(error, "ctx", None)  # a flag without its value has no context
    command = context.command_path if context else typed_verb()
    print(f"{command}: {error.format_message()}", file=sys.stderr)
    print(f"  next: {command} --help", file=sys.stderr)
    return ExitCode.BAD_INPUT


def _show_unexpected(error: Exception) -> int:
    if isinstance(error, ImportError) and error.name == "nearfar._native":
        return _show(
            MachineError(
                f"the native core cannot be loaded: {error}",
                f"install its libraries, on Debian or Ubuntu: apt-get install {_LINKED}",
            )
        )
    from nearfar._native import NativeError

    if isinstance(error, NativeError):
        return _show(from_native(error))
    if os.environ.get("NEARFAR_DEBUG"):
        raise error
    return _show(
        MachineError(
            f"a bug in nearfar: {type(error).__name__}: {error}",
            "report it with your command line; NEARFAR_DEBUG=1 shows where it happened",
        )
    )


def _code_of_exit(end: SystemExit) -> int:
    """Return the interpreter's exit code; a text is the message of a failure."""
    if isinstance(end.code, int):
        return end.code
    if end.code is None:
        return ExitCode.OK
    print(f"nearfar: {end.code}", file=sys.stderr)
    return 1
