"""Curves of the Mess benchmark (BSC): ``memory_curves.csv``, as its processing writes it.

Columns that are read: ``read_pct_rounded`` (fraction of reads of the memory traffic, in percent),
``bandwidth_smooth`` or ``bandwidth_mean`` (10^9 bytes/s) and ``latency_smooth`` or ``latency_mean``
(ns). Source: github.com/bsc-mem/Mess-Results; Esmaili-Dokht et al., "A Mess of Memory System
Benchmarking, Simulation and Application Profiling", MICRO 2024.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.profiles.imports.found import Found, loaded_figures
from nearfar.profiles.imports.numbers import LATENCY, RATE, Quantity
from nearfar.profiles.loaded_curves import Loaded

TOOL = "Mess"
_SHARE = "read_pct_rounded"
_COLUMNS = (
    ("bandwidth_smooth", "latency_smooth"),
    ("bandwidth_mean", "latency_mean"),
)
_PERCENT = Quantity("fraction of reads", "%", 0.01, 0, 1)
_GIGABYTES = replace(RATE, unit="GB/s", scale=1e9)
_ZERO = re.compile(r"0+(\.0*)?")


def recognizes(text: str) -> bool:
    """Whether the first line has the columns."""
    head = text.split("\n", 1)[0].strip().split(",")
    return _SHARE in head and _columns(head) is not None


def read(text: str, path: Path, nodes: tuple[int, int] | None) -> Found:
    """Read all curves. Raises BadInputError with the line that is wrong."""
    table = csv.DictReader(text.splitlines())
    head = _head(table, path)
    columns = _columns(head)
    if _SHARE not in head or columns is None:
        raise BadInputError(
            f"{path} has no columns {_SHARE}, bandwidth_mean and latency_mean",
            "give memory_curves.csv, which the processing of Mess writes",
        )
    curves: dict[float, list[Loaded]] = {}
    for row in _rows(table, path):
        where = f"{path}, line {table.line_num}"
        share, bandwidth, latency = ((row[name] or "").strip() for name in (_SHARE, *columns))
        curves.setdefault(_PERCENT.read(share, where), []).append(
            Loaded(_bandwidth(bandwidth, where), LATENCY.read(latency, where))
        )
    if not any(point.bandwidth for points in curves.values() for point in points):
        raise BadInputError(f"{path} has no curve", "give a file with measured rows")
    return Found(TOOL, loaded_figures(curves))


def _columns(head: Sequence[str]) -> tuple[str, str] | None:
    return next((pair for pair in _COLUMNS if set(pair) <= set(head)), None)


def _head(table: csv.DictReader[str], path: Path) -> Sequence[str]:
    try:
        names = table.fieldnames or ()
    except csv.Error as error:
        raise BadInputError(f"{path}, line 1: {error}", "give memory_curves.csv") from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInputError(
            f"{path} has {len(twice)} columns more than once, such as {twice[0]}",
            "leave one of each",
        )
    return names


def _rows(table: csv.DictReader[str], path: Path) -> Iterator[Mapping[str, str | None]]:
    try:
        yield from table
    except csv.Error as error:
        raise BadInputError(
            f"{path}, line {table.line_num + 1}: {error}", "correct the line or leave it out"
        ) from None


def _bandwidth(word: str, where: str) -> float:
    """Zero is the idle memory."""
    return 0.0 if _ZERO.fullmatch(word) else _GIGABYTES.read(word, where)
