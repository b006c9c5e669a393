"""Types of the report's sections. A section module turns a record into a ``Section``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.records.shape import Origin, Shaped
from nearfar.report.wording import format_quantity, interval_of, origin_of

if TYPE_CHECKING:
    from nearfar.records.run import Run


@dataclass(frozen=True)
class Context:
    """The input of sections: a run, and earlier runs of the same machine."""

    run: Run
    previous: Sequence[tuple[Path, Run]] = ()


@dataclass(frozen=True)
class Cell:
    """One cell of a table; ``detail`` is small text below, ``tone`` is ``good`` or ``bad``;
    ``heat`` from 0 to 100 shades it, ``bar`` fills as much of it."""

    text: str
    detail: str = ""
    origin: Origin | None = None
    tone: str = ""
    code: bool = False
    heat: int | None = None
    bar: int | None = None


@dataclass(frozen=True)
class Table:
    """Rows under column heads; the columns named in ``right`` hold figures.

    ``lead`` applies to all rows; ``stacked`` places the cells of a row below each other in a narrow
    window, for tables of prose or of long names.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    right: frozenset[int] = frozenset()
    folded: bool = False
    lead: str = ""
    stacked: bool = False

    # A template reads both properties once per cell, and each reads all cells.
    @cached_property
    def origin(self) -> Origin | None:
        """Return the origin in the caption: the one that all figures share, if any."""
        return _shared(cell for row in self.rows for cell in row) if self.caption else None

    @cached_property
    def column_origins(self) -> tuple[Origin | None, ...]:
        """Return the origin in each head, if the caption gives none."""
        if self.origin:
            return (None,) * len(self.columns)
        return tuple(
            _shared(row[index] for row in self.rows) if head else None
            for index, head in enumerate(self.columns)
        )


@dataclass(frozen=True)
class Figure:
    """A picture in two widths; the style sheet shows the one that fits."""

    caption: str
    wide: str
    narrow: str
    origins: tuple[Origin, ...] = ()
    half: bool = False


@dataclass(frozen=True)
class Section:
    """One chapter: the result in a sentence or two, then pictures, tables and notes; of these,
    ``assumptions`` are folded."""

    slug: str
    title: str
    finding: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    assumptions: Sequence[str] = field(default_factory=tuple)


def _shared(cells: Iterable[Cell]) -> Origin | None:
    """Return the origin that figures share, unless it is measured, which needs no label.

    None if the origin is all that a cell shows, as in the list of where numbers come from.
    """
    figures = [cell for cell in cells if cell.origin is not None]
    found = {cell.origin for cell in figures}
    plain = found == {Origin.MEASURED} or not all(cell.text for cell in figures)
    return found.pop() if len(found) == 1 and not plain else None


def figure_cell(shaped: Shaped, key: str) -> Cell:
    """Return a number of a result as a cell: value, interval below, origin next to it."""
    value = getattr(shaped, key)
    if value is None:
        return Cell("–")
    return Cell(format_quantity(key, value), interval_of(shaped, key), origin_of(shaped, key))


def heated(cell: Cell, value: float, least: float, most: float) -> Cell:
    """Return the cell shaded by the position of its value between two others, on a log scale."""
    share = math.log(value / least) / math.log(most / least) if 0 < least < most else 0.0
    return replace(cell, heat=round(100 * share))
