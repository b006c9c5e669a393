"""Flags and output that the ``crash`` verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags
from nearfar.records.choices import Platform, StoreRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text

    from nearfar.workflows.crash_result import Judged, Result

Program = Annotated[
    list[str], typer.Argument(metavar="-- PROGRAM ARGS", help="Program to record, run once.")
]
Recorder = Annotated[
    StoreRecorder,
    typer.Option(
        "--recorder",
        help="preload: for any program; instrumented: for one that was compiled for it.",
    ),
]
Pool = Annotated[
    str | None,
    flags.text(
        "--pool", "FILE", "The pool, if PROGRAM maps other files, too (default: the first)."
    ),
]
PlatformFlag = Annotated[
    Platform, typer.Option("--platform", help="Persistence domain: adr requires flushes, eadr not.")
]
Budget = Annotated[int, flags.count("--budget", least=0, help="Most images; 0: no limit.")]
Images = Annotated[
    Path | None,
    flags.text("--images", "DIR", "Directory of failing images (default: nearfar-crash-N)."),
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


def show(
    done: Judged[Result],
    text: Callable[[Result], Text],
    to_sarif: Callable[[Result], dict[str, object]],
    json_target: str | None,
    sarif_target: str | None = None,
) -> int:
    """Print a result with ``text``, write the requested JSON and SARIF files (with ``to_sarif``),
    and return the exit code of the verdict."""
    import json

    from nearfar.report.console import note, print_result, write_documents, write_json

    for warning in done.result.warnings:
        note(warning)
    if write_documents(json.dumps(done.document(), indent=1), json_target) and sarif_target != "-":
        print_result(text(done.result))
    if sarif_target:
        write_json(sarif_target, json.dumps(to_sarif(done.result), indent=1))
    return done.result.exit_code()
