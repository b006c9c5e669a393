"""Tables of the Seoul thesis' programs."""

from __future__ import annotations

from rich.console import RenderableType

from nearfar.records.programs import ProgramResult
from nearfar.report.html.sections import programs as section
from nearfar.report.terminal.layout import block, columns
from nearfar.report.wording import format_quantity, origins


def program(result: ProgramResult) -> RenderableType:
    """Return one row per size and allocator."""
    rows = [
        [
            section.size(result, row.n),
            row.allocator,
            *(
                "–" if (value := getattr(row, key)) is None else format_quantity(key, value)
                for key in section.COLUMNS
            ),
        ]
        for row in result.rows
    ]
    table = columns(["Size", "Arrays", *section.COLUMNS.values()], rows, 2)
    found = origins((row, "time_s") for row in result.rows)
    return block(
        section.NAMES[result.program], section.finding(result), found, table, section.notes(result)
    )
