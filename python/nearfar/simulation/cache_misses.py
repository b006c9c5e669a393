"""Count the cache misses of operations on a map or a set, in a model of a host's caches.

`native/bench/miss_counter` runs the benchmark with the real structure, compiled with a call before
each read and write, and passes the accesses of the timed region to the model. Four variants are
simulated at once: LRU or random replacement, and flushes that evict or keep their line. Of accesses
inside libpmemobj, only flushes are recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from queue import SimpleQueue
from typing import Literal

from nearfar.errors import MachineError
from nearfar.measure.timed import MapWork, SetWork
from nearfar.process.helpers import ask, shipped

#: Effect of a flush on its line.
Flushes = Literal["evict", "keep", "both"]


@dataclass(frozen=True)
class Caches:
    """Caches of a host: (bytes, ways) by level, and (entries, ways) by level of its TLB."""

    levels: tuple[tuple[int, int], ...]
    tlb: tuple[tuple[int, int], ...]
    page_bytes: int = 4096
    flushes: Flushes = "both"
    #: Sizes of the last level, each simulated as a variant.
    last_bytes: tuple[int, ...] = ()


@dataclass(frozen=True)
class LevelCounts:
    """Accesses and misses of one level, per operation."""

    loads: float
    load_misses: float
    stores: float
    store_misses: float
    prefetches: float
    writebacks: float


@dataclass(frozen=True)
class CacheVariant:
    """Results of one variant: each level, and last-level misses of addresses in the pool."""

    policy: str
    flush_evicts: bool
    last_bytes: int
    levels: tuple[LevelCounts, ...]
    far_load_misses: float


@dataclass(frozen=True)
class OperationCounts:
    """Means per operation, over ``operations`` operations."""

    operations: int
    changed: float
    fences: float
    lines: float
    flushes: float
    tlb_misses: float
    walks: float
    variants: tuple[CacheVariant, ...]

    def longer(self, by: float) -> OperationCounts:
        """A copy with cache and TLB accesses scaled by ``by``; flushes are unchanged."""
        variants = tuple(
            replace(
                v,
                far_load_misses=v.far_load_misses * by,
                levels=tuple(LevelCounts(*(n * by for n in astuple(level))) for level in v.levels),
            )
            for v in self.variants
        )
        return replace(
            self, tlb_misses=self.tlb_misses * by, walks=self.walks * by, variants=variants
        )

    @property
    def likely(self) -> tuple[CacheVariant, ...]:
        """Variants with the first size of the last level."""
        return tuple(v for v in self.variants if v.last_bytes == self.variants[0].last_bytes)


CountRequest = tuple[MapWork | SetWork, Caches, int]
_results: dict[CountRequest, OperationCounts] = {}


def count_misses(
    work: MapWork | SetWork, caches: Caches, operations: int, cpu: int
) -> OperationCounts:
    """Run the instrumented benchmark. Raises NearfarError if it cannot be run.

    Results are cached in this process.
    """
    asked = (work, caches, operations)
    if asked not in _results:
        _results[asked] = _run_counter(work, caches, operations, cpu)
    return _results[asked]


def count_misses_concurrently(asked: Sequence[CountRequest], cpus: Sequence[int]) -> None:
    """Run instrumented benchmarks concurrently, one per CPU, to fill the cache of `count_misses`.

    Nothing is timed. The largest starts first, to balance the CPUs. Raises NearfarError if one
    cannot be run.
    """
    wanted = sorted(dict.fromkeys(asked), key=lambda one: -one[0].entries)
    free: SimpleQueue[int] = SimpleQueue()
    for cpu in cpus:
        free.put(cpu)

    def run(one: CountRequest) -> None:
        cpu = free.get()
        try:
            count_misses(*one, cpu)
        finally:
            free.put(cpu)

    with ThreadPoolExecutor(len(cpus)) as pool:
        list(pool.map(run, wanted))


def clear_results() -> None:
    """Clear the cached results."""
    _results.clear()


def _run_counter(
    work: MapWork | SetWork, caches: Caches, operations: int, cpu: int
) -> OperationCounts:
    answer = ask(
        [
            str(shipped("nearfar-miss-counter")),
            *_words(work),
            "1",
            str(cpu),
            str(operations),
            _pairs(caches.levels),
            _pairs(caches.tlb),
            str(caches.page_bytes),
            caches.flushes,
            ",".join(map(str, caches.last_bytes)) or "-",
        ]
    )
    if answer.refusal:
        raise answer.refusal.error()
    if answer.died:
        raise MachineError(
            f"the instrumented benchmark ended with {answer.code}: {answer.complaint}",
            "report it with your command line",
        )
    return _read(answer.lines)


def _words(work: MapWork | SetWork) -> list[str]:
    if isinstance(work, MapWork):
        return [
            "map",
            work.type,
            work.operation,
            str(work.entries),
            str(work.value_bytes),
            work.tier,
        ]
    return [
        "set",
        work.structure,
        work.medium,
        str(work.entries),
        str(work.update_percent),
        work.tier,
    ]


def _pairs(levels: Sequence[tuple[int, int]]) -> str:
    return ",".join(f"{size}:{ways}" for size, ways in levels)


def _assumption(fields: Sequence[str]) -> tuple[str, bool, int]:
    return fields[0], fields[1] == "1", int(fields[2])


def _read(lines: Sequence[str]) -> OperationCounts:
    sums: dict[str, int] = {}
    levels: dict[tuple[str, bool, int], list[LevelCounts]] = {}
    far: dict[tuple[str, bool, int], float] = {}
    for line in lines:
        key, *fields = line.split(" ")
        if key == "level":
            each = [int(count) / sums["operations"] for count in fields[4:]]
            levels.setdefault(_assumption(fields), []).append(LevelCounts(*each))
        elif key == "far":
            far[_assumption(fields)] = int(fields[3]) / sums["operations"]
        else:
            sums[key] = int(fields[0])
    n = sums.pop("operations")
    return OperationCounts(
        operations=n,
        variants=tuple(CacheVariant(*key, tuple(found), far[key]) for key, found in levels.items()),
        **{key: value / n for key, value in sums.items()},
    )
