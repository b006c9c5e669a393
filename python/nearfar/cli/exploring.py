"""What ``crash check``, ``crash run`` and ``crash replay`` share: flags, progress, the outcome."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import ExitCode

if TYPE_CHECKING:
    from nearfar.verify.findings import Exploration


class Platform(StrEnum):
    """What survives without a flush: adr nothing, eadr the caches."""

    ADR = "adr"
    EADR = "eadr"


PlatformFlag = Annotated[
    Platform, typer.Option("--platform", help="Are flushes needed (adr) or not (eadr)?")
]
Budget = Annotated[
    int, typer.Option("--budget", metavar="N", min=0, help="Images at most; 0: no limit.")
]
Images = Annotated[
    Path | None,
    typer.Option(
        "--images", metavar="DIR", help="Where failing images go (default: nearfar-crash-N)."
    ),
]
Sarif = Annotated[
    str | None,
    typer.Option(
        "--sarif",
        metavar="FILE|-",
        help="Write the findings as SARIF 2.1.0.",
        callback=options.writable,
    ),
]


def explore(command: str, arguments: dict[str, object], quiet: bool) -> Exploration:
    """Run the explorer with a bar that tells images explored and left."""
    from nearfar.cli.console import progress
    from nearfar.report.text.crash import count_text
    from nearfar.verify.explorer import explore as run
    from nearfar.verify.explorer import with_lines
    from nearfar.verify.structures import check

    with progress(quiet) as shown:

        def tell(states: int, left: float, bad: int, done: float) -> None:
            rest = count_text(left)
            shown.step(f"{states:,} images explored, {rest} left, {bad:,} violations", done)

        result = check(arguments, tell) if command == "check" else run(command, arguments, tell)
    with_lines(result)
    return result


def show(
    result: Exploration, told: dict[str, object], json_target: str | None,
    sarif_target: str | None = None,
) -> int:  # fmt: skip
    """Print the outcome and write it where asked; exit code 1 if something was found."""
    import json

    from nearfar import __version__
    from nearfar.cli.console import note, print_result, write_json
    from nearfar.report.text.crash import exploration, replayed
    from nearfar.verify import sarif

    for warning in result.warnings:
        note(warning)
    if "-" not in (json_target, sarif_target):
        print_result(replayed(result) if "image" in told else exploration(result))
    if json_target:
        document = {**result.document(), **told, "nearfar_version": __version__}
        write_json(json_target, json.dumps(document, indent=1))
    if sarif_target:
        write_json(sarif_target, json.dumps(sarif.document(result), indent=1))
    if result.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.VIOLATION if result.violations else ExitCode.OK
