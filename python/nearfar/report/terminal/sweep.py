"""Tables of a sweep."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.figures import Origin
from nearfar.records.sweep import SweepResult
from nearfar.report.html.section import Cell
from nearfar.report.html.sections import sweep as section
from nearfar.report.terminal.layout import FigureText, columns


def sweep(result: SweepResult) -> RenderableType:
    """Return one table per verb, then what failed."""
    parts: list[RenderableType] = [
        Text(result.title or f"Sweep {result.suite}", style="bold"),
        Text(section.finding(result)),
    ]
    for verb in result.verbs():
        table = section.cells_table(result, verb)
        rows = [[_text(cell) for cell in row] for row in table.rows]
        if rows:
            first = min(table.right, default=len(table.columns))
            parts += [
                Text(""),
                Text(table.caption, style="bold"),
                columns(table.columns, rows, first),
            ]
    for cell in result.failed():
        parts.append(Text(f"failed: {cell.command}: {cell.message}", style="red"))
    return Group(*parts, Text(""), *(Text(f"· {n}", style="dim") for n in section.notes(result)))


def _text(cell: Cell) -> str:
    if cell.origin is None:
        return cell.text
    return FigureText(cell.text, "" if cell.origin is Origin.MEASURED else cell.origin.value)
