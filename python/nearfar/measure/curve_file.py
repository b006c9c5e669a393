"""Latency curves from CSV files: regions, latencies, and the knees found in them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median

from nearfar.errors import BadInputError
from nearfar.files import read_text
from nearfar.measure import knees
from nearfar.measure.access_unit import BlockCost, access_unit
from nearfar.records.figures import Origin, Provenance
from nearfar.records.results import CurveResult

REQUIRED = ("region_bytes", "latency_ns")
OPTIONAL = ("block_bytes", "ntwrite_ns")
#: Limits of a region's size and of the number of regions. Larger values mean that the file has
#: another format.
LARGEST = 1 << 62
MAX_REGIONS = 5000
_FORMAT = "columns region_bytes,latency_ns and, where known, block_bytes,ntwrite_ns"


@dataclass(frozen=True)
class Row:
    """One line of the file: nanoseconds of a load and of a non-temporal store of 64 B."""

    region_bytes: int
    latency_ns: float
    block_bytes: int | None
    ntwrite_ns: float | None


def read(path: Path) -> list[Row]:
    """Rows in file order. Raises BadInputError naming file, row and column."""
    text = read_text(path, "name a CSV file of a latency curve")
    try:
        lines = csv.DictReader(text.splitlines(keepends=True), skipinitialspace=True)
        columns = [name.strip() for name in lines.fieldnames or ()]
        lines.fieldnames = columns
        _check_columns(path, columns)
        return [_row(path, lines.line_num, cells) for cells in lines]
    except csv.Error as error:
        raise BadInputError(f"{path} is not CSV text: {error}", f"give it {_FORMAT}") from None


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    for name in REQUIRED:
        if name not in columns:
            raise BadInputError(
                f"{path}, row 1: no column {name}, only {', '.join(columns) or 'an empty line'}",
                f"give it {_FORMAT}",
            )
    for name in (*REQUIRED, *OPTIONAL):
        if columns.count(name) > 1:
            raise BadInputError(f"{path}, row 1: column {name} is there twice", "keep one of them")


def _row(path: Path, line: int, cells: dict[str | None, str | list[str] | None]) -> Row:
    if None in cells or None in cells.values():
        raise BadInputError(
            f"{path}, row {line}: more or fewer cells than the {sum(k is not None for k in cells)} "
            "columns",
            "give each row a cell for each column",
        )
    figures = {
        name: _figure(f"{path}, row {line}, column {name}", str(cells[name]))
        for name in (*REQUIRED, *OPTIONAL)
        if name in cells
    }
    for name in ("region_bytes", "block_bytes"):
        if name in figures and (figures[name] > LARGEST or not figures[name].is_integer()):
            raise BadInputError(
                f"{path}, row {line}, column {name}: {cells[name]} is not a whole number of bytes "
                "up to 2^62",
                "write bytes, such as 16384",
            )
    block = figures.get("block_bytes")
    return Row(
        int(figures["region_bytes"]),
        figures["latency_ns"],
        int(block) if block is not None else None,
        figures.get("ntwrite_ns"),
    )


def _figure(where: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise BadInputError(
            f"{where}: '{cell.strip()}' is not a finite number above zero", "fix or remove the row"
        )
    return value


def examine(path: Path) -> CurveResult:
    """Knees of the smallest block's curve, and the access unit if the file has store costs.

    Rows may be in any order. If several rows have the same region and block size, their median is
    used. Raises BadInputError if the file cannot be read, or has too few or too many regions.
    """
    rows = read(path)
    block = min((row.block_bytes for row in rows if row.block_bytes), default=None)
    curve = _medians((r.region_bytes, r.latency_ns) for r in rows if r.block_bytes == block)
    if not knees.MIN_REGIONS <= len(curve) <= MAX_REGIONS:
        of = f" of block {block}" if block else ""
        raise BadInputError(
            f"{path}: {len(curve)} different regions{of}, and knees need {knees.MIN_REGIONS} to "
            f"{MAX_REGIONS}",
            "give a row for each region of a curve, from small to large",
        )
    note = f"from the figures in {path}"
    fit = Provenance(origin=Origin.MODELLED, statistic="fit", samples=len(curve), note=note)
    found = knees.find(list(curve), list(curve.values()))
    unit = access_unit(_costs(rows))
    about_unit = fit.model_copy(update={"samples": unit.blocks}) if unit else None
    return CurveResult(
        source=str(path),
        block_bytes=block,
        knees=[knee.record(fit) for knee in found],
        access_unit_bytes=unit.unit_bytes if unit else None,
        intervals={"access_unit_bytes": (unit.low, unit.high)} if unit else {},
        provenance={"access_unit_bytes": about_unit} if about_unit else {},
    )


def _medians(pairs: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The median of the figures of each size, sizes ascending."""
    groups = groupby(sorted(pairs), key=lambda pair: pair[0])
    return {size: median(figure for _, figure in group) for size, group in groups}


def _costs(rows: Sequence[Row]) -> list[BlockCost]:
    return [
        BlockCost(row.block_bytes, row.region_bytes, row.ntwrite_ns)
        for row in rows
        if row.block_bytes and row.ntwrite_ns
    ]
