"""Tables of the Seoul thesis' experiment."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.experiment import ExperimentResult
from nearfar.records.figures import Origin
from nearfar.report.html.sections import experiment as section
from nearfar.report.html.sections.programs import NAMES
from nearfar.report.terminal.layout import block, columns

_SHOWN = (0, 1, 2, 3, 4, 6, 9)


def experiment(result: ExperimentResult) -> RenderableType:
    """Return the claims, then one table per program: its largest size; the report has all."""
    claims = section.claims_table(result)
    parts: list[RenderableType] = [
        columns(list(claims.columns), [[cell.text for cell in row] for row in claims.rows], 2)
    ]
    for program in section.programs_of(result):
        rows = [row for row in result.rows if row.program == program]
        largest = max(row.n for row in rows)
        shown = [section.cells(row) for row in rows if row.n == largest]
        heads = [section.HEADS[i] for i in _SHOWN]
        title = f"{NAMES[program]}, {largest:,} (the report has all sizes)"
        parts += [
            Text(""),
            Text(title, style="bold"),
            columns(heads, [[cells[i] for i in _SHOWN] for cells in shown], 4),
        ]
    return block(
        result.title,
        section.finding(result),
        [Origin.SIMULATED, Origin.CLAIMED],
        Group(*parts),
        section.notes(result),
    )
