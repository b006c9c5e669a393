"""Map a structure's name to the cases that are timed in cache, counted, and predicted.

Software of a structure in a pool is timed without flushes and fences if there is such a version;
for libpmemobj's there is none, so the measured cost of their fences is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nearfar.measure.timed import Case, MapWork, SetWork
from nearfar.model.host_costs import HostCosts
from nearfar.model.map_work import Constant
from nearfar.model.pointer_structures import (
    InCache,
    Memory,
    OperationTime,
    Shape,
    Software,
    loads_of,
    operation_time,
    software_of,
)
from nearfar.records.choices import IntsetMedium, SetName
from nearfar.records.persistent_structures import OWN_MAPS, IntsetStructure
from nearfar.simulation.cache_misses import Caches, count_misses, count_misses_concurrently
from nearfar.stats import Estimate

Work = MapWork | SetWork

#: The set and the medium of bench intset for each name.
SETS: dict[SetName, tuple[IntsetStructure, IntsetMedium]] = {
    "list": ("list", "pmem"),
    "hash": ("hash", "pmem"),
    "skip_list": ("skip_list", "pmem"),
    "list_tx": ("list", "pmdk"),
    "skip_list_tx": ("skip_list", "pmdk"),
    "map_tx": ("hash", "pmdk"),
    "map_atomic": ("hash", "pmdk_atomic"),
    "map_rp": ("hash", "pmdk_rp"),
}
POOL_TIER = "shm:"
#: Bytes in use by an entry, including free slots; where they are is counted, not assumed.
_BYTES_AN_ENTRY = {"list": 16, "hash": 27, "skip_list": 28, "pmdk": 128}
_BYTES_A_KEY = 8
#: Entries that fit in the first caches: few, and more.
_FEW = {"list": (32, 512), "skip_list": (64, 512), "hash": (128, 1024)}
_FEW_GETS = (500, 2000)
#: Entries of a map that is created in the timed region: start visible, and start negligible.
_FEW_CHANGED = (250, 500, 2000, 4000)
#: The same for a map that doubles: just after and just before a doubling, alternately.
_FEW_CHANGED_DOUBLING = (262, 500, 2100, 4000)
#: Operations that warm the caches before counting: a hash touches a line an operation, at most.
_HASH_OPERATIONS, _SKIP_LIST_OPERATIONS, _LIST_OPERATIONS = 200_000, 40_000, 20_000
#: Operations for each entry until the whole of a small hash is in the caches.
_HASH_ROUNDS, _MIN_OPERATIONS = 16, 20_000
#: Approximate loads of all operations of a counted run of a list: long lists are walked less
#: often, so that their mean position is off by up to a fifth; it is taken from short lists.
_LIST_LOADS, _FEWEST_WALKS = 6_000_000, 8
#: Walks whose mean position is precise to one percent.
_SURE = 3_000


@dataclass(frozen=True)
class ShapeCounter:
    """Counted accesses of works in a host's caches."""

    costs: HostCosts
    cpu: int

    def shape(self, work: Work, *, dependent: bool = False) -> Shape:
        """Every access of a work. Raises NearfarError if it cannot be run."""
        counts = count_misses(*self._asked(work, dependent), self.cpu)
        if isinstance(work, SetWork) and work.structure == "list" and counts.operations < _SURE:
            counts = counts.longer(self._loads_of_list(work) / loads_of(counts))
        made = work.entries if isinstance(work, MapWork) and work.operation != "get" else 0
        return Shape(counts, bytes_of(work), dependent, made)

    def _loads_of_list(self, work: SetWork) -> float:
        """Mean loads of an operation: a line through two short lists, as walks go half way."""
        few, many = (case.work for case in in_cache(Case(work)))
        first, last = (
            loads_of(count_misses(*self._asked(short, dependent=False), self.cpu))
            for short in (few, many)
        )
        return last + (last - first) * (work.entries - many.entries) / (many.entries - few.entries)

    def beforehand(self, cases: Sequence[Case], cpus: Sequence[int]) -> None:
        """Run all of them now, on several CPUs concurrently: nothing is timed meanwhile."""
        count_misses_concurrently([self._asked(case.work, case.dependent) for case in cases], cpus)

    def _asked(self, work: Work, dependent: bool) -> tuple[Work, Caches, int]:
        caches = self.costs.caches_for(_touched(work), at_once=not dependent)
        return work, caches, _operations(work)


def _operations(work: Work) -> int:
    if isinstance(work, SetWork) and work.structure == "skip_list":
        return _SKIP_LIST_OPERATIONS
    if isinstance(work, SetWork) and work.structure == "list":
        return min(max(_LIST_LOADS // work.entries, _FEWEST_WALKS), _LIST_OPERATIONS)
    return min(max(_HASH_ROUNDS * work.entries, _MIN_OPERATIONS), _HASH_OPERATIONS)


def bytes_of(work: Work) -> float:
    """Bytes in use."""
    if isinstance(work, SetWork):
        kind = "pmdk" if work.medium.startswith("pmdk") else work.structure
    else:
        kind = "hash" if work.type in OWN_MAPS else "pmdk"
    return float(work.entries * _BYTES_AN_ENTRY[kind])


def _touched(work: Work) -> float:
    """Bytes that go through the caches: a map's, and those of its list of keys."""
    keys = _BYTES_A_KEY * work.entries if isinstance(work, MapWork) else 0
    return bytes_of(work) + keys


def entries_of(structure: str, bytes_in_use: float) -> int:
    """Entries of a structure of this many bytes."""
    return max(int(bytes_in_use / _BYTES_AN_ENTRY[structure]), 16)


def sets(structure: SetName, entries: int, update_percent: int) -> tuple[Case, Case]:
    """The structure in its pool, and its volatile counterpart."""
    kind, medium = SETS[structure]
    work = SetWork(kind, medium, entries, update_percent, POOL_TIER)
    return Case(work), Case(replace(work, medium="dram"))


def in_cache(case: Case) -> tuple[Case, ...]:
    """Cases to time for the software of a case: itself, small, and without fences if possible."""
    work = case.work
    if isinstance(work, SetWork):
        bare: IntsetMedium = "unflushed" if work.medium == "pmem" else work.medium
        return tuple(Case(replace(work, medium=bare, entries=n)) for n in _FEW[work.structure])
    few: tuple[int, ...] = _FEW_GETS
    if work.operation != "get":
        few = _FEW_CHANGED if work.type in OWN_MAPS else _FEW_CHANGED_DOUBLING
    return tuple(replace(case, work=replace(work, entries=n)) for n in few)


def software(
    case: Case,
    timed: Mapping[Case, Estimate],
    costs: HostCosts,
    near: Memory,
    counter: ShapeCounter,
) -> Software:
    """Software of a case, from timings in cache."""
    return software_of(
        [
            InCache(
                Constant(*(t * 1e-9 for t in (timed[c].value, timed[c].low, timed[c].high))),
                counter.shape(c.work, dependent=c.dependent),
                near,
            )
            for c in in_cache(case)
        ],
        costs,
    )


def all_in_cache(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases to time before predictions start."""
    return tuple(dict.fromkeys(c for case in cases for c in in_cache(case)))


@dataclass(frozen=True)
class Point:
    """A case at one size with its prediction, in seconds."""

    case: Case
    predicted: OperationTime


def predict(
    cases: Sequence[Case],
    known: Mapping[Case, Software],
    costs: HostCosts,
    near: Memory,
    seen: ShapeCounter,
) -> list[Point]:
    """Predict cases with known software on this machine's memory."""
    return [
        Point(
            case,
            operation_time(
                seen.shape(case.work, dependent=case.dependent), known[case], costs, near
            ),
        )
        for case in cases
    ]
