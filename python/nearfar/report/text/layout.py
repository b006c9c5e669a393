"""What all results on a terminal share: head, table, notes. Never read as rich's markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearfar.records.shape import Origin, Shaped
from nearfar.report.wording import format_quantity, interval_of, origin_of


def figure(shaped: Shaped | None, key: str) -> str:
    """Value, interval, and the origin unless it was measured."""
    if shaped is None or getattr(shaped, key) is None:
        return "–"
    text = format_quantity(key, getattr(shaped, key))
    interval = interval_of(shaped, key)
    if interval:
        text += f"  ({interval})"
    origin = origin_of(shaped, key)
    return text if origin is Origin.MEASURED else f"{text} {origin.value if origin else 'unknown'}"


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], first_figure: int) -> Table:
    """Plain columns; figures, from ``first_figure`` on, to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if index >= first_figure else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def block(
    title: str, finding: str, found: Sequence[Origin], table: RenderableType, notes: Sequence[str]
) -> RenderableType:
    """A headed result: origins beside the title, finding, table, notes."""
    head = Text(title, style="bold").append(
        f"  [{', '.join(origin.value for origin in found) or 'origin not recorded'}]", style="dim"
    )
    return Group(
        head, Text(finding), Text(""), table, Text(""),
        *(Text(f"· {note}", style="dim") for note in notes),
    )  # fmt: skip
