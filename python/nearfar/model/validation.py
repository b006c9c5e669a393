"""Predicted against measured times on this machine: the cases, and the errors.

The cases: gets in a map, each after the last or each waiting for it, insertions; the same in two
maps of libpmemobj's; and the three sets of bench intset with half of the operations updates; in
DRAM and in a pool on tmpfs; six sizes from what the first caches hold to 16 times the last one.
Nothing of a measured point is in its prediction: software is timed in cache, loads by the probe,
misses are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar.measure.timed import Case, MapWork, SetWork
from nearfar.model.host_costs import HostCosts
from nearfar.model.pointer_structures import Memory, OperationTime, Software, operation_time
from nearfar.model.structure_cases import (
    POOL_TIER,
    ShapeCounter,
    entries_of,
    in_cache,
    software,
)
from nearfar.stats import Estimate

if TYPE_CHECKING:
    from nearfar.records.choices import MapOperation, MapType

#: Multiples of the last cache: sizes from cache-resident to far beyond it.
LARGEST_CACHES = 16
_SMALLEST_BYTES = 24 * 1024
SIZES = 6
UPDATE_PERCENT = 50
_PMDK_MAPS: tuple[MapType, ...] = ("map_atomic", "map_rp")
_PMDK_OPERATIONS: tuple[MapOperation, ...] = ("get", "insert")


@dataclass(frozen=True)
class Point:
    """A case at one size with its prediction, in seconds."""

    case: Case
    predicted: OperationTime


def sizes(last_cache_bytes: float, count: int = SIZES) -> list[float]:
    """Sizes in bytes in equal logarithmic steps."""
    ratio = LARGEST_CACHES * last_cache_bytes / _SMALLEST_BYTES
    return [_SMALLEST_BYTES * ratio ** (i / (count - 1)) for i in range(count)]


def map_cases(last_cache_bytes: float, count: int = SIZES) -> list[Case]:
    """Cases of bench map."""
    kinds: list[tuple[MapWork, bool]] = [
        (MapWork("map", "get", 0, 8, POOL_TIER), False),
        (MapWork("map", "get", 0, 8, POOL_TIER), True),
        (MapWork("map", "insert", 0, 8, POOL_TIER), False),
        (MapWork("dram", "get", 0, 8, "dram"), False),
        (MapWork("dram", "get", 0, 8, "dram"), True),
    ]
    return [
        Case(replace(work, entries=entries_of("hash", size)), dependent)
        for work, dependent in kinds
        for size in sizes(last_cache_bytes, count)
    ]


def pmdk_map_cases(last_cache_bytes: float, count: int = SIZES) -> list[Case]:
    """Cases of bench map with the PMDK-style maps."""
    return [
        Case(MapWork(kind, operation, entries_of("pmdk", size), 8, POOL_TIER))
        for kind in _PMDK_MAPS
        for operation in _PMDK_OPERATIONS
        for size in sizes(last_cache_bytes, count)
    ]


def set_cases(last_cache_bytes: float, count: int = SIZES) -> list[Case]:
    """Cases of bench intset."""
    return [
        Case(SetWork(structure, medium, entries_of(structure, size), UPDATE_PERCENT, POOL_TIER))
        for structure in ("hash", "skip_list", "list")
        for medium in ("pmem", "dram")
        for size in sizes(last_cache_bytes, count)
    ]


def all_in_cache(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases to time before predictions start."""
    return tuple(dict.fromkeys(c for case in cases for c in in_cache(case)))


def predict(
    cases: Sequence[Case],
    timed: Mapping[Case, Estimate],
    costs: HostCosts,
    near: Memory,
    seen: ShapeCounter,
) -> list[Point]:
    """Predict all cases on this machine's memory."""
    known = {case: software(case, timed, costs, near, seen) for case in cases}
    return predict_with(cases, known, costs, near, seen)


def predict_with(
    cases: Sequence[Case],
    known: Mapping[Case, Software],
    costs: HostCosts,
    near: Memory,
    seen: ShapeCounter,
) -> list[Point]:
    """Predict all cases with known software."""
    return [
        Point(
            case,
            operation_time(
                seen.shape(case.work, dependent=case.dependent), known[case], costs, near
            ),
        )
        for case in cases
    ]
