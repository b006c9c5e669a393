"""``nearfar trace import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.trace._shared import Output
from nearfar.records.choices import TraceFormat

File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]
Form = Annotated[TraceFormat, typer.Option("--from", help="Format of the input.")]


def import_(file: File, form: Form, output: Output, quiet: flags.Quiet = False) -> None:
    """Import another simulator's trace: its accesses verbatim, with no cache in between.

    Example: `nearfar trace import requests.txt --from dramsim3 -o T`
    """
    from nearfar.report.console import note
    from nearfar.workflows import tracing

    done = tracing.import_trace(file, form, output)
    if not quiet:
        note(f"nearfar: {output}: {done.reads} reads and {done.writes} writes")
