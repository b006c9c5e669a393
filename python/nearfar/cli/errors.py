"""Errors of a verb: the message on standard error, and the exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

from typer.exceptions import TyperException

from nearfar.errors import (
    BadInputError,
    ExitCode,
    MachineError,
    NearfarError,
    ReaderGoneError,
    from_native,
)

#: Packages of the libraries that the native core links to: a wheel does not include them.
_LINKED = "libhwloc15 libpfm4 libpmemobj1 liburing2 libzstd1"


def exit_code_of(
    work: Callable[[], int],
    typed_verb: Callable[[], str],
    wants_document: Callable[[], bool] = lambda: False,
) -> int:
    """Run ``work`` and return its exit code; print an error with the name of ``typed_verb``.

    Where ``wants_document``, an error is written to standard output as JSON too.
    """
    try:
        return work()
    except TyperException as error:
        shown = _usage(error, typed_verb)
    except NearfarError as error:
        shown = error
    except KeyboardInterrupt:
        print("nearfar: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        return _code_of_exit(end)
    except Exception as error:
        shown = _unexpected(error)
    return _show(shown, document=bool(shown.what) and wants_document())


def _show(error: NearfarError, *, document: bool) -> int:
    from nearfar.report.console import write_refusal

    if error.what:
        print(
            error.what if isinstance(error, _UsageError) else f"nearfar: {error.what}",
            file=sys.stderr,
        )
    if error.next_step:
        print(f"  next: {error.next_step}", file=sys.stderr)
    if document:
        with contextlib.suppress(MachineError, ReaderGoneError):  # one message is enough
            write_refusal(error.what, error.next_step, error.exit_code)
            sys.stdout.flush()
    return error.exit_code


class _UsageError(BadInputError):
    """A wrong command line; the message begins with its verb."""


def _usage(error: TyperException, typed_verb: Callable[[], str]) -> NearfarError:
    context = getattr(error, "ctx", None)  # a flag without its value has no context
    command = context.command_path if context else typed_verb()
    invalid = _invalid_value(error.__cause__)
    if invalid:
        error.message = invalid
    next_step = f"{command} --help"
    if getattr(getattr(error, "param", None), "name", "") == "pid":
        next_step = "list processes with `ps -e`"
    return _UsageError(f"{command}: {error.format_message()}", next_step)


#: Messages on invalid values, by the type of pydantic's error.
_INVALID = {
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "int_parsing_size": "is too large",
    "float_parsing": "is not a number",
    "finite_number": "is not a finite number",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "literal_error": "is not {expected}",
}


def _invalid_value(cause: BaseException | None) -> str:
    """Return what is wrong with the value of a flag; empty if Typer's own text says it."""
    found = getattr(cause, "errors", None)
    first = next(iter(found()), None) if callable(found) else None
    if first is None:
        return ""
    if first["type"] == "value_error":
        return str(first["msg"]).removeprefix("Value error, ").removesuffix(".")
    if first["type"] not in _INVALID:
        return ""
    value = str(first["input"])
    why = _INVALID[first["type"]].format(**first.get("ctx", {}))
    if value.lower() == "nan" and first["type"].endswith("_equal"):
        why = _INVALID["finite_number"]  # NaN fails each comparison with a limit
    return f"'{value}' {why}"


def _unexpected(error: Exception) -> NearfarError:
    if isinstance(error, ImportError) and error.name == "nearfar._native":
        return MachineError(
            f"the native core cannot be loaded: {error}",
            f"install its libraries, on Debian or Ubuntu: apt-get install {_LINKED}",
        )
    from nearfar._native import NativeError

    if isinstance(error, NativeError):
        return from_native(error)
    if os.environ.get("NEARFAR_DEBUG"):
        raise error
    return MachineError(
        f"a bug in nearfar: {type(error).__name__}: {error}",
        "report it with your command line; NEARFAR_DEBUG=1 shows where it happened",
    )


def _code_of_exit(end: SystemExit) -> int:
    """Return the interpreter's exit code; a text is the message of a failure."""
    if isinstance(end.code, int):
        return end.code
    if end.code is None:
        return ExitCode.OK
    print(f"nearfar: {end.code}", file=sys.stderr)
    return 1
