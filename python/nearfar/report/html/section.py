"""Types of the report's sections. A section module turns a record into a ``Section``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.records.figures import FigureModel, Origin
from nearfar.report.wording import format_quantity, interval_of, origin_of

if TYPE_CHECKING:
    from nearfar.records.run import Run


@dataclass(frozen=True)
class Context:
    """The input of sections: a run, and earlier runs of the same machine."""

    run: Run
    previous: Sequence[tuple[Path, Run]] = ()
    #: Heads of the columns with figures of the earlier run and of this one.
    heads: tuple[str, str] = ("Before", "Now")


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    #: Small text below.
    detail: str = ""
    origin: Origin | None = None
    #: Color of the text: ``good``, ``bad`` or none.
    tone: str = ""
    #: Whether the text is code.
    code: bool = False
    #: Intensity of the background, from 0 to 100.
    heat: int | None = None
    #: Length of a bar behind the text, in percent of the cell.
    bar: int | None = None


@dataclass(frozen=True)
class Table:
    """A table with column heads."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    #: Indices of the columns with numbers, which are aligned to the right.
    right: frozenset[int] = frozenset()
    #: Whether the table is closed until the reader opens it.
    folded: bool = False
    #: Text above the table that applies to all rows.
    lead: str = ""
    #: Whether the cells of a row are placed below each other in a narrow window.
    stacked: bool = False

    # Cached, because the template reads both properties for each cell, and each of them reads all
    # cells.
    @cached_property
    def origin(self) -> Origin | None:
        """Return the origin that the caption shows: that of all figures, if it is the same."""
        return _shared(cell for row in self.rows for cell in row) if self.caption else None

    @cached_property
    def column_origins(self) -> tuple[Origin | None, ...]:
        """Return the origin that each column head shows, unless the caption shows one."""
        if self.origin:
            return (None,) * len(self.columns)
        return tuple(
            _shared(row[index] for row in self.rows) if head else None
            for index, head in enumerate(self.columns)
        )


@dataclass(frozen=True)
class Figure:
    """A picture in two widths. The style sheet shows the one that fits into the window."""

    caption: str
    #: The SVG for wide windows, and the one for narrow windows.
    wide: str
    narrow: str
    #: Origins of the figures in the picture.
    origins: tuple[Origin, ...] = ()
    #: Whether two pictures fit next to each other.
    half: bool = False


@dataclass(frozen=True)
class Section:
    """One section of the page, in this order: finding, pictures, tables, notes."""

    #: Its name in links, and in ``topics.TOPICS``.
    slug: str
    title: str
    #: The result in one or two sentences.
    finding: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    #: Notes that are closed until the reader opens them.
    assumptions: Sequence[str] = field(default_factory=tuple)


def _shared(cells: Iterable[Cell]) -> Origin | None:
    """Return the origin of all figures in cells, if it is the same and is not *measured*.

    Measured figures have no label. Also None if a cell has no text: then the origin itself is the
    content of the cell, as in the list of provenances.
    """
    figures = [cell for cell in cells if cell.origin is not None]
    found = {cell.origin for cell in figures}
    plain = found == {Origin.MEASURED} or not all(cell.text for cell in figures)
    return found.pop() if len(found) == 1 and not plain else None


def figure_cell(result: FigureModel, key: str) -> Cell:
    """Return a number of a result as a cell: the value, its interval below, and its origin."""
    value = getattr(result, key)
    if value is None:
        return Cell("–")
    return Cell(format_quantity(key, value), interval_of(result, key), origin_of(result, key))


def heated(cell: Cell, value: float, least: float, most: float) -> Cell:
    """Return the cell with the heat of its value: 0 at ``least``, 100 at ``most``, logarithmic."""
    share = math.log(value / least) / math.log(most / least) if 0 < least < most else 0.0
    return replace(cell, heat=round(100 * share))
