"""Parts of all results: head, table, notes. Text is never interpreted as rich markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from nearfar.records.figures import FigureModel, Origin
from nearfar.report.wording import format_quantity, interval_of, origin_of


@dataclass(frozen=True)
class OneLine:
    """A text in one line: a terminal cuts it at its width, a file has all of it."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the text as rich prints it."""
        shown = self.text.copy()
        shown.no_wrap = True
        shown.overflow = "ellipsis" if console.is_terminal else "ignore"
        yield shown


class FigureText(str):
    """A figure followed by its origin; ``bare`` is the figure without the origin."""

    bare: str
    origin: str

    def __new__(cls, bare: str, origin: str) -> FigureText:
        """Return the figure with its origin."""
        text = super().__new__(cls, f"{bare} {origin}".rstrip())
        text.bare, text.origin = bare, origin
        return text


def figure(result: FigureModel | None, key: str) -> str:
    """Return value and interval, and the origin unless it is measured."""
    if result is None or getattr(result, key) is None:
        return "–"
    text = format_quantity(key, getattr(result, key))
    interval = interval_of(result, key)
    if interval:
        text += f"  ({interval})"
    origin = origin_of(result, key)
    mark = "" if origin is Origin.MEASURED else origin.value if origin else "unknown"
    return FigureText(text, mark)


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], first_figure: int) -> Table:
    """Return plain columns; figures, from ``first_figure`` on, are right-aligned.

    An origin that all figures of a column share is shown once, in its head.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    named = [_column(head, [row[i] for row in rows]) for i, head in enumerate(heads)]
    for index, (head, _) in enumerate(named):
        table.add_column(Text(head), justify="right" if index >= first_figure else "left")
    for cells in zip(*(cells for _, cells in named), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _column(head: str, cells: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return head and cells, with the origin that all figures share in the head."""
    found = {cell.origin for cell in cells if isinstance(cell, FigureText)}
    shared = found.pop() if len(found) == 1 else ""
    if not shared:
        return head, cells
    bare = [cell.bare if isinstance(cell, FigureText) else cell for cell in cells]
    return f"{head}, {shared}", bare


def block(
    title: str, finding: str, found: Sequence[Origin], table: RenderableType, notes: Sequence[str]
) -> RenderableType:
    """Return a headed result: origins next to the title, finding, table, notes."""
    head = Text(title, style="bold").append(
        f"  [{', '.join(origin.value for origin in found) or 'origin not recorded'}]", style="dim"
    )
    return Group(
        head,
        Text(finding),
        Text(""),
        table,
        Text(""),
        *(Text(f"· {note}", style="dim") for note in notes),
    )
