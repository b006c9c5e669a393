"""``nearfar trace show T``."""

from __future__ import annotations

from typing import Annotated

from nearfar.cli import flags
from nearfar.cli.output import show_document, show_notes
from nearfar.cli.trace._shared import File

First = Annotated[int, flags.count("--first", least=0, help="Number of the first line.")]
Count = Annotated[int, flags.count("--count", most=1_000_000, help="Number of lines.")]


def show(file: File, first: First = 0, count: Count = 20, json: flags.Json = None) -> None:
    """Show lines of a trace: kind, address, object, code, and the load that each depends on.

    Example: `nearfar trace show sort.trace --first 1000000 --count 50`
    """
    from nearfar.report.terminal import traces
    from nearfar.workflows import tracing

    found = tracing.lines(file, first, count)
    show_notes(found.notes)
    show_document(traces.lines(first, found.rows), found.document(), json)
