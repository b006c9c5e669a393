"""``nearfar crash run``."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.crash import _exploring

_FUNCTION = re.compile(r"(.+\.so[.0-9]*):([A-Za-z_]\w*)")


class Recorder(StrEnum):
    """How stores are recorded."""

    PRELOAD = "preload"
    INSTRUMENTED = "instrumented"


def run(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS", help="Program to record, run once.")
    ],
    checker: Annotated[
        str,
        typer.Option(
            "--checker",
            metavar="CMD|LIB.so:FUNC",
            help="Command that checks an image, whose path is appended; or a C function.",
        ),
    ],
    recorder: Annotated[
        Recorder, typer.Option("--recorder", help="For any program; or for one compiled for it.")
    ] = Recorder.PRELOAD,
    platform: _exploring.PlatformFlag = _exploring.Platform.ADR,
    budget: _exploring.Budget = 20_000,
    time: Annotated[
        str,
        typer.Option(
            "--time", metavar="TIME", help="Time limit of one check.", callback=flags.a_time
        ),
    ] = "10",
    images: _exploring.Images = None,
    json: flags.Json = None,
    sarif: _exploring.Sarif = None,
    quiet: flags.Quiet = False,
) -> int:
    """Record a program on persistent memory, and check what a crash can leave of its pool.

    The pool is the first regular file that PROGRAM maps shared and writable. CMD opens an image of
    it and exits with 0 if the image is valid, 2 if it cannot be opened, and any other code if it is
    invalid; its last line of output gives the reason. NEARFAR_CRASH_ACKNOWLEDGED,
    NEARFAR_CRASH_IN_FLIGHT and NEARFAR_CRASH_FINISHED specify what the image must contain
    (nearfar/crash_intrinsics.h). LIB.so:FUNC names a C function that does the same, faster
    (nearfar/crash_checker.h). If CMD modifies its image, crashes during its recovery are explored
    too. The output of PROGRAM goes to standard error.

    Exits with 1 on a violation, and with 3 if the result is inconclusive: PROGRAM failed, its
    recording is truncated, or the budget ended before every store was tried.

    Examples:

        nearfar crash run --checker ./check -- ./program pool

        nearfar crash run --recorder instrumented --checker "./check --quick" -- ./program pool

        nearfar crash run --checker ./check.so:check -- ./program pool
    """
    import tempfile

    from nearfar.units import parse_seconds
    from nearfar.verify.images import folder_for, keep
    from nearfar.verify.recorder import record

    command = _command(checker)
    limit_ms = int(parse_seconds(time) * 1000)
    asked: dict[str, object] = {
        "checker": command,
        "platform": platform.value,
        "limit_ms": limit_ms,
    }
    folder = folder_for(images)
    try:
        with tempfile.TemporaryDirectory(prefix="nearfar-crash-") as made:
            work = Path(made).resolve()
            code = record(program, work / "log", recorder.value)
            result = _exploring.explore(
                "run",
                {
                    **_files(work),
                    **checker_arguments(command),
                    "images": folder,
                    "budget": budget,
                    "limit_ms": limit_ms,
                    "platform": platform.value,
                },
                quiet or json == "-",
            )
        if code:
            result.program_failed = True
            result.warnings.append(f"{program[0]} ended with {code}; only that part is explored")
        keep(result, folder, {"verb": "run", **asked})
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    request = {"verb": "crash run", **asked, "program": program, "recorder": recorder.value}
    return _exploring.show(result, request, json, sarif)


def _command(checker: str) -> list[str]:
    """Return the words of a checker. Raises BadInputError if it names no program or function."""
    import shlex
    import shutil

    from nearfar.errors import BadInputError

    try:
        command = shlex.split(checker)
    except ValueError as error:
        raise BadInputError(
            f"--checker {checker!r} cannot be split into words: {error}", "close its quotes"
        ) from None
    if not command:
        raise BadInputError("--checker is empty", "name a program that checks an image")
    if not (len(command) == 1 and _FUNCTION.fullmatch(command[0])) and not shutil.which(command[0]):
        raise BadInputError(
            f"--checker: '{command[0]}' is not an executable program",
            "name a program that checks an image, or LIBRARY.so:FUNCTION",
        )
    return command


def _files(work: Path) -> dict[str, object]:
    """Return the explorer's working files and what records the recovery of a checker."""
    from nearfar.process.helpers import shipped
    from nearfar.verify.recorder import RECORDER

    names = ("log", "image", "output", "recovery")
    return {**{name: work / name for name in names}, "recorder": shipped(RECORDER)}


def checker_arguments(command: list[str]) -> dict[str, str]:
    """Return a checker as the explorer reads it: LIBRARY.so:FUNCTION, or one key per argument."""
    if len(command) == 1 and (match := _FUNCTION.fullmatch(command[0])):
        return {"checker_library": str(Path(match[1]).resolve()), "checker_function": match[2]}
    return {f"checker{i}": argument for i, argument in enumerate(command)}
