"""From the name of a structure to what is timed in cache, what is watched, and what is predicted.

Software of a structure in a pool is timed without flushes and fences where there is such a version;
of those on libpmemobj there is none, so that their fences are taken off by what they cost here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nearfar.measure.timed import Case, MapWork, SetWork
from nearfar.model.host_costs import HostCosts
from nearfar.model.map_work import Constant
from nearfar.model.structure_results import StructureName
from nearfar.model.structures import (
    InCache,
    Memory,
    Shape,
    Software,
    loads_of,
    software_of,
)
from nearfar.records.pools import OWN_MAPS, IntsetMedium, IntsetStructure
from nearfar.simulate.watch import Caches, watch, watch_all
from nearfar.stats import Estimate

Work = MapWork | SetWork

#: The set and the medium of bench intset behind each name.
SETS: dict[StructureName, tuple[IntsetStructure, IntsetMedium]] = {
    "list": ("list", "pmem"), "hash": ("hash", "pmem"), "skip_list": ("skip_list", "pmem"),
    "list_tx": ("list", "pmdk"), "skip_list_tx": ("skip_list", "pmdk"), "map_tx": ("hash", "pmdk"),
    "map_atomic": ("hash", "pmdk_atomic"), "map_rp": ("hash", "pmdk_rp"),
}  # fmt: skip
POOL_TIER = "shm:"
#: Bytes in use by an entry, slots that stand free included; where they lie is watched, not this.
_BYTES_AN_ENTRY = {"list": 16, "hash": 27, "skip_list": 28, "pmdk": 128}
_BYTES_A_KEY = 8
#: Entries that lie in the first caches, a few and more.
_FEW = {"list": (32, 512), "skip_list": (64, 512), "hash": (128, 1024)}
_FEW_GETS = (500, 2000)
#: Of a map that is made meanwhile: so few that its start shows, and many.
_FEW_CHANGED = (250, 500, 2000, 4000)
#: Just after such a map has doubled, when it has moved twice as many entries a new one, and before.
_FEW_CHANGED_DOUBLING = (262, 500, 2100, 4000)
#: What warms the caches before as many count: a line an operation in a hash, at most.
_HASH_OPERATIONS, _SKIP_LIST_OPERATIONS, _LIST_OPERATIONS = 200_000, 40_000, 20_000
#: Operations an entry by which the whole of a small hash is in the caches.
_HASH_ROUNDS, _LEAST_OPERATIONS = 16, 20_000
#: Loads of all operations of one watched run of a list, about: long lists are walked less often,
#: so that their mean place is off by up to a fifth; short lists tell what it is.
_LIST_LOADS, _FEWEST_WALKS = 6_000_000, 8
#: Walks whose mean place is as good as known: off by one percent.
_SURE = 3_000


@dataclass(frozen=True)
class Watching:
    """Works in a host's caches."""

    costs: HostCosts
    cpu: int

    def shape(self, work: Work, *, dependent: bool = False) -> Shape:
        """Every access of it. Raises NearfarError where it cannot be run."""
        watched = watch(*self._asked(work, dependent), self.cpu)
        if isinstance(work, SetWork) and work.structure == "list" and watched.operations < _SURE:
            watched = watched.longer(self._loads_of_list(work) / loads_of(watched))
        made = work.entries if isinstance(work, MapWork) and work.operation != "get" else 0
        return Shape(watched, bytes_of(work), dependent, made)

    def _loads_of_list(self, work: SetWork) -> float:
        """Of an operation, on average: a line through two short lists, as walks go half way."""
        few, many = (case.work for case in in_cache(Case(work)))
        first, last = (
            loads_of(watch(*self._asked(short, dependent=False), self.cpu)) for short in (few, many)
        )
        return last + (last - first) * (work.entries - many.entries) / (many.entries - few.entries)

    def beforehand(self, cases: Sequence[Case], cpus: Sequence[int]) -> None:
        """Run all of them now, on several processors at once: nothing is timed meanwhile."""
        watch_all([self._asked(case.work, case.dependent) for case in cases], cpus)

    def _asked(self, work: Work, dependent: bool) -> tuple[Work, Caches, int]:
        caches = self.costs.caches_for(_touched(work), at_once=not dependent)
        return work, caches, _operations(work)


def _operations(work: Work) -> int:
    if isinstance(work, SetWork) and work.structure == "skip_list":
        return _SKIP_LIST_OPERATIONS
    if isinstance(work, SetWork) and work.structure == "list":
        return min(max(_LIST_LOADS // work.entries, _FEWEST_WALKS), _LIST_OPERATIONS)
    return min(max(_HASH_ROUNDS * work.entries, _LEAST_OPERATIONS), _HASH_OPERATIONS)


def bytes_of(work: Work) -> float:
    """In use."""
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
    """Of a structure that takes so many bytes."""
    return max(int(bytes_in_use / _BYTES_AN_ENTRY[structure]), 16)


def sets(structure: StructureName, entries: int, update_percent: int) -> tuple[Case, Case]:
    """The structure in its pool, and its volatile twin."""
    kind, medium = SETS[structure]
    work = SetWork(kind, medium, entries, update_percent, POOL_TIER)
    return Case(work), Case(replace(work, medium="dram"))


def in_cache(case: Case) -> tuple[Case, ...]:
    """What is timed to know the software of a case: it, small, and without fences if that goes."""
    work = case.work
    if isinstance(work, SetWork):
        bare: IntsetMedium = "unflushed" if work.medium == "pmem" else work.medium
        return tuple(Case(replace(work, medium=bare, entries=n)) for n in _FEW[work.structure])
    few: tuple[int, ...] = _FEW_GETS
    if work.operation != "get":
        few = _FEW_CHANGED if work.type in OWN_MAPS else _FEW_CHANGED_DOUBLING
    return tuple(replace(case, work=replace(work, entries=n)) for n in few)


def software(
    case: Case, timed: Mapping[Case, Estimate], costs: HostCosts, near: Memory, seen: Watching
) -> Software:
    """Of a case, from what was timed in cache."""
    return software_of(
        [
            InCache(
                Constant(*(t * 1e-9 for t in (timed[c].value, timed[c].low, timed[c].high))),
                seen.shape(c.work, dependent=c.dependent), near,
            )
            for c in in_cache(case)
        ],
        costs,
    )  # fmt: skip
