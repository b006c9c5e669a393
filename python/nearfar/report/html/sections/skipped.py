"""Section on parts that a run skipped, and why."""

from __future__ import annotations

from nearfar.report.html.section import Cell, Context, Section, Table
from nearfar.report.wording import count


def section(context: Context) -> Section | None:
    """Return the section, or None if nothing was skipped."""
    skipped = context.run.skipped
    if not skipped:
        return None
    rows = [[Cell(each.section), Cell(each.what), Cell(each.why)] for each in skipped]
    return Section(
        "skipped",
        "What was skipped",
        f"The run left out {count(len(skipped), 'part')}.",
        tables=[Table(["Section", "What", "Why"], rows, stacked=True)],
    )
