"""Count the cache misses of a map or a set: `native/bench/watch` simulates the caches of a host.

The benchmark runs with the real structure, compiled with a call before each read and write. It
counts the accesses in the timed region. Four variants are simulated at once: LRU or random
replacement, and flushes that evict or keep their line. Of accesses inside libpmemobj, only flushes
are recorded.
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
class Level:
    """Accesses and misses of one level, per operation."""

    loads: float
    load_misses: float
    stores: float
    store_misses: float
    prefetches: float
    writebacks: float


@dataclass(frozen=True)
class Variant:
    """Results of one variant: each level, and last-level misses of addresses in the pool."""

    policy: str
    flush_evicts: bool
    last_bytes: int
    levels: tuple[Level, ...]
    far_load_misses: float


@dataclass(frozen=True)
class Watched:
    """Means per operation, over ``operations`` operations."""

    operations: int
    changed: float
    fences: float
    lines: float
    flushes: float
    tlb_misses: float
    walks: float
    variants: tuple[Variant, ...]

    def longer(self, by: float) -> Watched:
        """A copy with cache and TLB accesses scaled by ``by``; flushes are unchanged."""
        variants = tuple(
            replace(
                v,
                far_load_misses=v.far_load_misses * by,
                levels=tuple(Level(*(n * by for n in astuple(level))) for level in v.levels),
            )
            for v in self.variants
        )
        return replace(
            self, tlb_misses=self.tlb_misses * by, walks=self.walks * by, variants=variants
        )

    @property
    def likely(self) -> tuple[Variant, ...]:
        """Variants with the first size of the last level."""
        return tuple(v for v in self.variants if v.last_bytes == self.variants[0].last_bytes)


Asked = tuple[MapWork | SetWork, Caches, int]
_seen: dict[Asked, Watched] = {}


def watch(work: MapWork | SetWork, caches: Caches, operations: int, cpu: int) -> Watched:
    """Run the watched benchmark. Raises NearfarError if it cannot be run.

    Results are cached in this process.
    """
    asked = (work, caches, operations)
    if asked not in _seen:
        _seen[asked] = _watch(work, caches, operations, cpu)
    return _seen[asked]


def watch_all(asked: Sequence[Asked], cpus: Sequence[int]) -> None:
    """Run watched benchmarks concurrently, one per CPU, to fill the cache of `watch`.

    Nothing is timed. The largest starts first, to balance the CPUs. Raises NearfarError if one
    cannot be run.
    """
    wanted = sorted(dict.fromkeys(asked), key=lambda one: -one[0].entries)
    free: SimpleQueue[int] = SimpleQueue()
    for cpu in cpus:
        free.put(cpu)

    def run(one: Asked) -> None:
        cpu = free.get()
        try:
            watch(*one, cpu)
        finally:
            free.put(cpu)

    with ThreadPoolExecutor(len(cpus)) as pool:
        list(pool.map(run, wanted))


def forget() -> None:
    """Clear the cached results."""
    _seen.clear()


def _watch(work: MapWork | SetWork, caches: Caches, operations: int, cpu: int) -> Watched:
    answer = ask(
        [
            str(shipped("nearfar-watch")),
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
            f"the watched benchmark ended with {answer.code}: {answer.complaint}",
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


def _read(lines: Sequence[str]) -> Watched:
    sums: dict[str, int] = {}
    levels: dict[tuple[str, bool, int], list[Level]] = {}
    far: dict[tuple[str, bool, int], float] = {}
    for line in lines:
        key, *fields = line.split(" ")
        if key == "level":
            each = [int(count) / sums["operations"] for count in fields[4:]]
            levels.setdefault(_assumption(fields), []).append(Level(*each))
        elif key == "far":
            far[_assumption(fields)] = int(fields[3]) / sums["operations"]
        else:
            sums[key] = int(fields[0])
    n = sums.pop("operations")
    return Watched(
        operations=n,
        variants=tuple(Variant(*key, tuple(found), far[key]) for key, found in levels.items()),
        **{key: value / n for key, value in sums.items()},
    )
