"""Flags, progress and output that ``crash check``, ``crash run`` and ``crash replay`` share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.errors import ExitCode

if TYPE_CHECKING:
    from nearfar.verify.findings import Exploration


class Platform(StrEnum):
    """What survives a power cut without a flush: nothing (adr), or the caches (eadr)."""

    ADR = "adr"
    EADR = "eadr"


PlatformFlag = Annotated[
    Platform, typer.Option("--platform", help="Persistence domain: adr requires flushes, eadr not.")
]
Budget = Annotated[
    int,
    typer.Option(
        "--budget", metavar="N", min=0, max=ranges.MOST_COUNT, help="Most images; 0: no limit."
    ),
]
Images = Annotated[
    Path | None,
    typer.Option(
        "--images", metavar="DIR", help="Directory of failing images (default: nearfar-crash-N)."
    ),
]
Sarif = Annotated[
    str | None,
    typer.Option(
        "--sarif",
        metavar="FILE|-",
        help="Write the findings as SARIF 2.1.0.",
        callback=flags.writable,
    ),
]


def explore(command: str, arguments: dict[str, object], quiet: bool) -> Exploration:
    """Run the explorer with a progress bar of the images explored and left."""
    from nearfar.report.console import progress
    from nearfar.report.terminal.crash import count_text
    from nearfar.verify.explorer import explore as run
    from nearfar.verify.explorer import with_lines
    from nearfar.verify.structures import check

    with progress(quiet) as shown:

        def report(states: int, left: float, bad: int, done: float) -> None:
            rest = count_text(left)
            shown.step(f"{states:,} images explored, {rest} left, {bad:,} violations", done)

        result = check(arguments, report) if command == "check" else run(command, arguments, report)
    with_lines(result)
    return result


def show(
    result: Exploration,
    request: dict[str, object],
    json_target: str | None,
    sarif_target: str | None = None,
) -> int:
    """Print the result, write the requested files, and return the exit code of the verdict."""
    import json

    from nearfar import __version__
    from nearfar.report.console import note, print_result, write_json
    from nearfar.report.terminal.crash import exploration, replayed
    from nearfar.verify import sarif

    for warning in result.warnings:
        note(warning)
    if "-" not in (json_target, sarif_target):
        print_result(replayed(result) if "image" in request else exploration(result))
    if json_target:
        document = {**result.document(), **request, "nearfar_version": __version__}
        write_json(json_target, json.dumps(document, indent=1))
    if sarif_target:
        write_json(sarif_target, json.dumps(sarif.exploration(result), indent=1))
    if result.interrupted:
        return ExitCode.INTERRUPTED
    codes = {"violation": ExitCode.VIOLATION, "inconclusive": ExitCode.MACHINE}
    return codes.get(result.verdict, ExitCode.OK)
