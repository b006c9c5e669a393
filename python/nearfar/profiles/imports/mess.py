"""Curves of the Mess benchmark (BSC): ``memory_curves.csv``, as its processing writes it.

Columns that are read: ``read_pct_rounded`` (fraction of reads of the memory traffic, in percent),
``bandwidth_smooth`` or ``bandwidth_mean`` (10^9 bytes/s) and ``latency_smooth`` or ``latency_mean``
(ns). Source: github.com/bsc-mem/Mess-Results; Esmaili-Dokht et al., "A Mess of Memory System
Benchmarking, Simulation and Application Profiling", MICRO 2024.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.profiles.imports.found import Found, loaded_figures
from nearfar.profiles.loaded_curves import Loaded

TOOL = "Mess"
_SHARE = "read_pct_rounded"
_COLUMNS = (
    ("bandwidth_smooth", "latency_smooth"),
    ("bandwidth_mean", "latency_mean"),
)
_BYTES_PER_S = 1e9


def recognizes(text: str) -> bool:
    """Whether the first line has the columns."""
    head = text.split("\n", 1)[0].strip().split(",")
    return _SHARE in head and _columns(head) is not None


def read(text: str, path: Path, nodes: tuple[int, int]) -> Found:
    """Read all curves. Raises BadInputError with the line that is wrong."""
    table = csv.DictReader(text.splitlines())
    columns = _columns(table.fieldnames or ())
    if _SHARE not in (table.fieldnames or ()) or columns is None:
        raise BadInputError(
            f"{path} has no columns {_SHARE}, bandwidth_mean and latency_mean",
            "give memory_curves.csv, which the processing of Mess writes",
        )
    curves: dict[float, list[Loaded]] = {}
    for row in table:
        values = [_number(row, name, path, table.line_num) for name in (_SHARE, *columns)]
        share, bandwidth, latency = values
        if share > 100 or latency <= 0:
            raise BadInputError(
                f"{path}, line {table.line_num}: {share:g} % reads at {latency:g} ns",
                "a share is at most 100 %, a latency above 0: correct the line or leave it out",
            )
        curves.setdefault(share / 100, []).append(Loaded(bandwidth * _BYTES_PER_S, latency))
    if not any(point.bandwidth for points in curves.values() for point in points):
        raise BadInputError(f"{path} has no curve", "give a file with measured rows")
    return Found(TOOL, loaded_figures(curves))


def _columns(head: Sequence[str]) -> tuple[str, str] | None:
    return next((pair for pair in _COLUMNS if set(pair) <= set(head)), None)


def _number(row: Mapping[str, str | None], name: str, path: Path, line: int) -> float:
    try:
        value = float(row[name] or "")
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise BadInputError(
            f"{path}, line {line}: {name} is {row[name]!r}, not a number of at least 0",
            "correct the line or leave it out",
        )
    return value
