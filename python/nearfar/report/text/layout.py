"""What all results on a terminal share: head, table, notes. Never read as rich's markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearfar.records.shape import Origin, Shaped
from nearfar.report.wording import format_quantity, interval_of, origin_of


class Told(str):
    """A figure with its origin in words; ``bare`` is without them, for who says it elsewhere."""

    bare: str
    origin: str

    def __new__(cls, bare: str, origin: str) -> Told:
        """The figure as it stands alone."""
        told = super().__new__(cls, f"{bare} {origin}".rstrip())
        told.bare, told.origin = bare, origin
        return told


def figure(shaped: Shaped | None, key: str) -> str:
    """Value, interval, and the origin unless it was measured."""
    if shaped is None or getattr(shaped, key) is None:
        return "–"
    text = format_quantity(key, getattr(shaped, key))
    interval = interval_of(shaped, key)
    if interval:
        text += f"  ({interval})"
    origin = origin_of(shaped, key)
    return Told(text, "" if origin is Origin.MEASURED else origin.value if origin else "unknown")


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], first_figure: int) -> Table:
    """Plain columns; figures, from ``first_figure`` on, to the right.

    An origin that all figures of a column share is said once, in its head.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    told = [_column(head, [row[i] for row in rows]) for i, head in enumerate(heads)]
    for index, (head, _) in enumerate(told):
        table.add_column(Text(head), justify="right" if index >= first_figure else "left")
    for cells in zip(*(cells for _, cells in told), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _column(head: str, cells: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Head and cells, with the origin that all figures share in the head."""
    found = {cell.origin for cell in cells if isinstance(cell, Told)}
    shared = found.pop() if len(found) == 1 else ""
    if not shared:
        return head, cells
    bare = [cell.bare if isinstance(cell, Told) else cell for cell in cells]
    return f"{head}, {shared}", bare


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
