"""CSV tables as input of models: errors name file, row and column.

Rows are counted from 1 below the header, as people count measurements; the line of the file is
printed next to it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from nearfar.errors import BadInputError
from nearfar.files import read_text

#: Published and measured speeds are in decimal megabytes: 1 MB/s = 10^6 bytes/s.
BYTES_PER_MB = 1e6
#: Range of a nonzero cell: models square, divide and scale it without overflow.
LEAST, MOST = 1e-100, 1e100


@dataclass(frozen=True)
class Row:
    """One row: its place in the file, and its cells by column."""

    path: str
    number: int
    line: int
    cells: dict[str, str]

    def refuse(self, column: str, reason: str) -> NoReturn:
        """Raise BadInputError that names this row's cell."""
        raise BadInputError(
            f"{self.path}, row {self.number} (line {self.line}), column {column}: {reason}",
            "fix that cell, or leave the row out",
        )

    def number_of(self, column: str, *, zero_allowed: bool = False) -> float:
        """The positive number in a cell, 1e-100 to 1e100; zero only where it is allowed."""
        text = self.cells[column].strip()
        if not text:
            self.refuse(column, "nothing is there")
        try:
            value = float(text)
        except ValueError:
            self.refuse(column, f"'{text}' is not a number")
        if "_" in text or not text.isascii():  # float() reads 61_042, and digits of any script
            self.refuse(column, f"'{text}' is not a number")
        if not math.isfinite(value):
            self.refuse(column, f"'{text}' is not finite")
        if value < 0 or (value == 0 and not zero_allowed):
            self.refuse(column, f"{text} is {'negative' if value < 0 else 'zero'}")
        if value and not LEAST <= value <= MOST:
            self.refuse(column, f"{text} is beyond {LEAST:g} to {MOST:g}")
        return value

    def count_of(self, column: str, *, zero_allowed: bool = False) -> int:
        """The whole number in a cell; zero only where it is allowed."""
        value = self.number_of(column, zero_allowed=zero_allowed)
        if value != int(value):
            self.refuse(column, f"{self.cells[column].strip()} is not a whole number")
        return int(value)


def read_rows(path: str | Path, columns: Sequence[str]) -> list[Row]:
    """All rows of a CSV file that has at least these columns; others are ignored.

    Raises BadInputError if the file cannot be read, lacks a column or a row, or is ragged.
    """
    name = str(path)
    lines = csv.reader(read_text(path, "give a CSV file").splitlines(), strict=True)
    expected = f"a header with {', '.join(columns)}, and a row for each measurement"
    try:
        numbered = [(lines.line_num, cells) for cells in lines if any(c.strip() for c in cells)]
    except csv.Error as error:
        raise BadInputError(
            f"{name}, line {lines.line_num}: {error}", f"write {expected}"
        ) from None
    if len(numbered) < 2:
        raise BadInputError(f"{name} has no rows", f"write {expected}")
    header = [cell.strip() for cell in numbered[0][1]]
    for column in columns:
        if header.count(column) != 1:
            what = "lacks the column" if column not in header else "has twice the column"
            raise BadInputError(f"{name} {what} {column}", f"write {expected}")
    rows = []
    for number, (line, cells) in enumerate(numbered[1:], start=1):
        if len(cells) != len(header):
            raise BadInputError(
                f"{name}, row {number} (line {line}): {len(cells)} cells under {len(header)} "
                f"headings, so column {header[min(len(cells), len(header) - 1)]} is in doubt",
                "write one cell for each heading",
            )
        rows.append(Row(name, number, line, dict(zip(header, cells, strict=True))))
    return rows


def without_repeats(
    rows: Iterable[Row],
    keys: Sequence[str],
    values: Sequence[str],
    *,
    zero_allowed: bool = False,
) -> list[Row]:
    """Rows with each key once; raises BadInputError where a key repeats with other values.

    ``zero_allowed`` is of the values; keys may be zero here.
    """
    first: dict[tuple[float, ...], Row] = {}
    for row in rows:
        key = tuple(row.number_of(k, zero_allowed=True) for k in keys)
        seen = first.setdefault(key, row)
        for column in values:
            known, value = (r.number_of(column, zero_allowed=zero_allowed) for r in (seen, row))
            if known != value:
                row.refuse(
                    column,
                    f"{row.cells[column].strip()} contradicts row {seen.number} of the same "
                    f"{' and '.join(keys)}, which has {seen.cells[column].strip()}",
                )
    return list(first.values())
