"""``nearfar trace export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.trace._shared import File
from nearfar.records.choices import TraceFormat

Form = Annotated[TraceFormat, typer.Option("--to", help="Format of the output.")]
Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="File to write; it must not exist.")
]


def export(
    file: File,
    form: Form,
    output: Output,
    truncated: flags.Truncated = False,
    quiet: flags.Quiet = False,
) -> None:
    """Export a trace for another simulator; objects, threads and dependences are lost.

    Example: `nearfar trace export T --to ramulator -o requests.trace`
    """
    from nearfar.report.console import note
    from nearfar.workflows import tracing

    done = tracing.export_trace(file, form, output, truncated=truncated)
    if done.ending:
        note(f"nearfar: {file}: {done.ending}")
    if not quiet:
        note(f"nearfar: {output}: {done.reads} reads and {done.writes} writes")
