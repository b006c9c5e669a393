"""Array kernels by number of threads: the plan shared by the bandwidth probe and STREAM."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nearfar import _native
from nearfar._native import ArrayBench, parse_tier, tier_capacity_bytes
from nearfar.errors import BadInputError, MachineError
from nearfar.measure.ceiling import check_rate
from nearfar.measure.pool_tiers import place
from nearfar.measure.session import Samples
from nearfar.records.choices import Accessor
from nearfar.records.run import NO_TIME, Skipped
from nearfar.units import MIB, format_size

#: STREAM's rule for the array size, applied to the measured last cache.
MIN_CACHES = 4
#: Minimum array size. For smaller arrays, the start of the threads would affect the time.
MIN_ARRAY = 64 * MIB
DOUBLE = 8
#: Minimum bytes of a timed copy, so that the overhead of the timing is negligible.
MIN_TIMED_ALONE = 64 << 10
#: Number of timed repeats of each kernel on one set of arrays.
ROUNDS = 3

#: One grid point: kernel and number of threads.
Point = tuple[str, int]


def point_name(point: Point) -> str:
    """Name of a point for output."""
    kernel, threads = point
    return f"{kernel}, {threads} thread{'s' * (threads > 1)}"


def default_array_bytes(effective_last_cache: int) -> int:
    """Default size of each array."""
    return max(MIN_CACHES * effective_last_cache, MIN_ARRAY)


def thread_counts(processors: int) -> tuple[int, ...]:
    """Thread counts of the scaling curve: all up to eight, then powers of two and the maximum."""
    if processors <= 8:
        return tuple(range(1, processors + 1))
    doublings = [1 << i for i in range(processors.bit_length()) if 1 << i < processors]
    return (*doublings, processors)


def in_cache(array_bytes: int, effective_last_cache: int) -> bool:
    """Whether an array is so small that the cache, not memory, determines its bandwidth."""
    return array_bytes < MIN_CACHES * effective_last_cache


def skipped_points(section: str, tier: str, points: Sequence[Point]) -> list[Skipped]:
    """Points that a plan dropped for lack of time, as text."""
    threads = sorted({threads for _, threads in points})
    what = f"{', '.join(map(str, threads))} threads on {tier}"
    return [Skipped(section=section, what=what, why=NO_TIME)] if points else []


def check_size(array_bytes: int) -> None:
    """Reject arrays that cannot be split among threads by whole lines."""
    if array_bytes < DOUBLE * 64:
        raise BadInputError(
            f"arrays of {format_size(array_bytes)} are too small", "give at least 512 B"
        )


def check_room(tiers: Sequence[str], array_bytes: int) -> None:
    """Reject arrays that do not fit, before anything is allocated."""
    lying_on: dict[str, list[str]] = {}
    for tier in tiers:
        lying_on.setdefault(_place(tier), []).append(tier)
    for here in lying_on.values():
        room = min(tier_capacity_bytes(tier) for tier in here)
        if array_bytes * len(here) > room:
            raise MachineError(
                f"{len(here)} arrays of {format_size(array_bytes)} do not fit in "
                f"{' and '.join(dict.fromkeys(here))}, which has {format_size(room)} free",
                "ask for a smaller --size",
            )


def _place(tier: str) -> str:
    """The memory a tier allocates from: interleaved DRAM and its nodes share one memory."""
    spec = parse_tier(tier)
    if spec["persists"] in ("nothing", "emulated") and spec["node"] < 0:
        return "memory"
    return f"{spec['kind']} {spec['node']} {spec['path']}"


def check_bytes(wanted: Mapping[str, int], next_step: str) -> None:
    """Reject sizes that do not fit, by tier, before anything is allocated."""
    lying_on: dict[str, list[str]] = {}
    for tier in wanted:
        lying_on.setdefault(_place(tier), []).append(tier)
    for here in lying_on.values():
        room = min(tier_capacity_bytes(tier) for tier in here)
        size = sum(wanted[tier] for tier in here)
        if size > room:
            raise MachineError(
                f"{format_size(size)} do not fit in {' and '.join(here)}, which has "
                f"{format_size(room)} free",
                next_step,
            )


@dataclass(frozen=True)
class ArrayPlan:
    """Kernels over three arrays, each on a tier, by number of threads. Values: bytes/s.

    ``accessor``: whether arrays are mappings of their tiers, or objects of a pool on one tier.
    """

    kernels: tuple[str, ...]
    tiers: tuple[str, str, str]
    array_bytes: int
    cpus: tuple[int, ...]
    threads: tuple[int, ...]
    rounds: int = ROUNDS
    accessor: Accessor = "mapped"

    def __post_init__(self) -> None:
        check_size(self.array_bytes)

    @property
    def elements(self) -> int:
        """Doubles in each array."""
        return self.array_bytes // DOUBLE

    @property
    def grid(self) -> Sequence[Point]:
        """Kernels, by threads."""
        return [(kernel, threads) for threads in self.threads for kernel in self.kernels]

    def team(self, threads: int) -> list[int]:
        """The CPU of each of ``threads`` threads. More threads than CPUs share CPUs evenly."""
        return [self.cpus[i % len(self.cpus)] for i in range(threads)]

    def bench(self, team: list[int]) -> ArrayBench | _native.PoolArrayBench:
        """Fresh arrays, first touched by the threads that use them."""
        if self.accessor == "mapped":
            return ArrayBench(*self.tiers, self.elements, team)
        return _native.PoolArrayBench(place(self.tiers[0]), self.elements, team)

    def epoch(self, seed: int) -> Samples[Point]:
        """Measure each number of threads on fresh arrays.

        The threads first touch the arrays, and run one untimed round.
        """
        samples: Samples[Point] = Samples()
        counts = list(self.threads)
        random.Random(seed).shuffle(counts)
        for threads in counts:
            team = self.team(threads)
            bench = self.bench(team)
            for i in range(1 + self.rounds):
                for kernel in self.kernels:
                    repeat = bench.repeat(kernel, team)
                    if i > 0:
                        rate = check_rate(
                            repeat["counted_bytes"] / repeat["seconds"], threads, kernel
                        )
                        samples.add((kernel, threads), rate, repeat["members"])
            samples.worst_error = max(samples.worst_error, _check_contents(bench))
        return samples

    def smaller(self) -> ArrayPlan | None:
        """First drop every other number of threads; then all but the smallest and the largest."""
        if len(self.threads) <= 2:
            return None
        kept = self.threads[:: 2 if len(self.threads) > 4 else len(self.threads) - 1]
        return replace(self, threads=tuple(sorted({*kept, self.threads[-1]})))


def _check_contents(bench: ArrayBench | _native.PoolArrayBench) -> float:
    """Largest relative error of any element; raises MachineError if a kernel is incorrect."""
    error = bench.worst_error()
    if error > 1e-12:
        raise MachineError(
            f"the arrays hold wrong values (relative error {error:.2g}): the figures are worthless",
            "check the memory of this machine; report it if it is sound",
        )
    return error
