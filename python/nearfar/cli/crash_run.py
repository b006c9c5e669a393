"""``nearfar crash run``."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import exploring, options

_FUNCTION = re.compile(r"(.+\.so[.0-9]*):([A-Za-z_]\w*)")


class Recorder(StrEnum):
    """How stores are seen."""

    PRELOAD = "preload"
    INSTRUMENTED = "instrumented"


def run(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS", help="What is recorded, once.")
    ],
    checker: Annotated[
        str,
        typer.Option(
            "--checker",
            metavar="CMD|LIB.so:FUNC",
            help="Run on each image, whose path follows its arguments; or a C function.",
        ),
    ],
    recorder: Annotated[
        Recorder, typer.Option("--recorder", help="Any program; or one compiled for it.")
    ] = Recorder.PRELOAD,
    platform: exploring.PlatformFlag = exploring.Platform.ADR,
    budget: exploring.Budget = 20_000,
    time: Annotated[
        str, typer.Option("--time", metavar="TIME", help="Longest time for one check.")
    ] = "10",
    images: exploring.Images = None,
    json: options.Json = None,
    sarif: exploring.Sarif = None,
    quiet: options.Quiet = False,
) -> int:
    """Record a program on persistent memory, and check what a crash can leave of its pool.

    The pool is the first regular file that PROGRAM maps shared and writable. CMD opens an image of
    it and exits with 0 if it is good, 2 if it does not open, and anything else if it is not good;
    its last line of output says why. NEARFAR_CRASH_ACKNOWLEDGED, NEARFAR_CRASH_IN_FLIGHT and
    NEARFAR_CRASH_FINISHED tell it what must be there (nearfar/crash_intrinsics.h). LIB.so:FUNC
    names a C function that does the same, and faster (nearfar/crash_checker.h). Where CMD changes
    its image, its recovery is crashed as well. Exits with 1 on a violation. What PROGRAM prints
    goes to standard error.

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
        "checker": command, "platform": platform.value, "limit_ms": limit_ms,
    }  # fmt: skip
    folder = folder_for(images)
    try:
        with tempfile.TemporaryDirectory(prefix="nearfar-crash-") as made:
            work = Path(made).resolve()
            code = record(program, work / "log", recorder.value)
            result = exploring.explore(
                "run",
                {**_files(work), **checker_arguments(command), "images": folder, "budget": budget,
                 "limit_ms": limit_ms, "platform": platform.value},
                quiet or json == "-",
            )  # fmt: skip
        if code:
            result.warnings.append(f"{program[0]} ended with {code}; it is explored up to there")
        keep(result, folder, {"verb": "run", **asked})
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    told = {"verb": "crash run", **asked, "program": program, "recorder": recorder.value}
    return exploring.show(result, told, json, sarif)


def _command(checker: str) -> list[str]:
    """The words of a checker. Raises BadInputError where it can be no program and no function."""
    import shlex
    import shutil

    from nearfar.errors import BadInputError

    try:
        command = shlex.split(checker)
    except ValueError as error:
        raise BadInputError(
            f"--checker {checker!r} cannot be parted into words: {error}", "close its quotes"
        ) from None
    if not command:
        raise BadInputError("--checker is empty", "name a program that checks an image")
    if not (len(command) == 1 and _FUNCTION.fullmatch(command[0])) and not shutil.which(command[0]):
        raise BadInputError(
            f"--checker: there is no program '{command[0]}' that may be run",
            "name a program that checks an image, or LIBRARY.so:FUNCTION",
        )
    return command


def _files(work: Path) -> dict[str, object]:
    """Files of the explorer while it works, and what records the recovery of a checker."""
    from nearfar.measure.beside import shipped
    from nearfar.verify.recorder import RECORDER

    names = ("log", "image", "output", "recovery")
    return {**{name: work / name for name in names}, "recorder": shipped(RECORDER)}


def checker_arguments(command: list[str]) -> dict[str, str]:
    """A checker as the explorer wants it: LIBRARY.so:FUNCTION, or a command, an argument each."""
    if len(command) == 1 and (match := _FUNCTION.fullmatch(command[0])):
        return {"checker_library": str(Path(match[1]).resolve()), "checker_function": match[2]}
    return {f"checker{i}": argument for i, argument in enumerate(command)}
