"""``nearfar trace stats T``."""

from __future__ import annotations

from nearfar.cli import flags
from nearfar.cli.output import show_document, show_notes
from nearfar.cli.trace._shared import File


def stats(file: File, json: flags.Json = None, quiet: flags.Quiet = False) -> None:
    """Count the content of a trace: accesses, misses of each level, lines by site.

    A truncated or damaged trace is read up to the damage, and the damage is reported.

    Example: `nearfar trace stats sort.trace`, `nearfar trace stats sort.trace --json -`
    """
    from nearfar.report.terminal import traces
    from nearfar.workflows import tracing

    found = tracing.count(file)
    show_notes(found.damage if quiet else found.notes)
    show_document(traces.statistics(found.stats, file), found.document(), json)
