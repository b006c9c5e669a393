"""Costs of placements, by the core model of `trace`, over a sample of a trace.

Instruction time is calibrated so that the modeled run with all data where it was observed (normally
near memory) takes the measured user CPU time. If that exceeds PLAUSIBLE_NS, some loads with unknown
dependences are assumed to wait for the previous load, in the fraction that matches the measured
time. Of an instruction's time only DISPATCH_NS hides latency (``memory_costs``), so that time which
the model does not explain changes no cost of a miss. Kernel time, except first touches, is the same
for all placements. Slowdowns are ratios of CPU times, over all threads.

A far page adds the difference of first-touch times, once per touched page:

    t = Σ pages_far · first_touch_far - pages_near · first_touch_near

Pages are counted in the page size of each memory. Stack, globals and mappings use small pages;
their difference is zero unless both memories have small pages. Savings are limited to the kernel
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from nearfar.place.memory_costs import Core, CoreTuple, Memory, MemoryTuple, PageWalk, Work

if TYPE_CHECKING:
    from nearfar.place.traced import ProgramTrace

CostRequest = tuple[MemoryTuple, MemoryTuple, CoreTuple, list[int]]
#: Maximum plausible time of an instruction without misses: two cycles at 3.3 GHz, for stalls on
#: nearer caches, branch mispredictions and long operations.
PLAUSIBLE_NS = 0.6
#: Time of an instruction that is not calibrated, in ns.
_TYPICAL_NS = 0.25
#: No limit on the time of an instruction, in ns.
_NO_BOUND = 64.0
#: Search grid of the time of an instruction, in ns; fractions of chained loads are searched
#: likewise.
_INSTRUCTION_NS = (0.01, 0.03, 0.06, 0.12, 0.2, 0.35, 0.6, 1.0, 2.0, 8.0)
_CHAINED = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
#: Factors on the longest instruction time, if chained loads alone do not explain the time.
_BEYOND = (1.0, 1.5, 2.5, 5.0, 20.0, 100.0)


@dataclass(frozen=True)
class SiteCost:
    """Costs of one site, in the modeled part of the run."""

    reads: int
    prefetches: int
    writes: int
    dependent: int
    walks: int
    stall_ns: float
    added_touch_ns: float = 0.0  # first touches far, less those near

    def added_ns(self, near: SiteCost) -> float:
        """The site's cost in excess of its cost near."""
        return self.stall_ns - near.stall_ns + self.added_touch_ns


@dataclass(frozen=True)
class Cost:
    """Costs of one placement; CPU time of all threads."""

    time_ns: float
    stall_ns: float
    instructions: int
    sites: tuple[SiteCost, ...]


class CostModel(Protocol):
    """Costs of placements, each given by its far sites."""

    near: Memory

    def costs(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[Cost]:
        """The cost of each placement."""


@dataclass(frozen=True)
class Assumed:
    """One variant of the model's inputs: core, far read latency (ns), work, factors on near and far
    first-touch times; near latency and page walks (ns), None for the measured values."""

    core: Core
    far_ns: float
    work: Work
    touches: tuple[float, float] = (1.0, 1.0)
    near_ns: float | None = None
    walks: tuple[PageWalk | None, PageWalk | None] = (None, None)


def _between(places: Sequence[float], times: Sequence[float], wanted: float) -> float:
    """Linearly interpolate the place where increasing times reach ``wanted``; extrapolate beyond
    the last."""
    above = next((i for i, time in enumerate(times) if time >= wanted), len(times) - 1)
    above = max(above, 1)
    slope = (times[above] - times[above - 1]) / (places[above] - places[above - 1])
    return places[above - 1] + (wanted - times[above - 1]) / slope if slope else places[above]


class Coster:
    """A trace, two memories and a core. A placement is the set of sites that lie far.

    ``run_memory``: the memory that the measured run was on, None for near memory.
    """

    def __init__(
        self, traced: ProgramTrace, near: Memory, core: Core, run_memory: Memory | None = None
    ) -> None:
        self.traced = traced
        self.near, self.core = near, core
        self.run_memory = run_memory or near
        self.work = Work(_TYPICAL_NS)
        self.other_works: list[Work] = []  # that also explain the measured time
        #: At the ends of near memory's latency, if the measured run was there.
        self.near_works: list[tuple[float, Work]] = []
        self.system_s = 0.0
        self.scale = 1.0  # of the model's times, if misses alone take longer than the program
        self._timed: dict[tuple[Work, float], float] = {}

    @property
    def every(self) -> int:
        """The model processes one in this many of the trace's blocks."""
        return self.traced.sample.every

    def calibrate(self, user_s: float, cpu_s: float) -> float:
        """Fit the work to ``user_s`` (user CPU time), of ``cpu_s`` (user and kernel).

        Sets work, scale and variants. Returns modeled over measured time: above 1 if misses alone
        take longer.
        """
        self.system_s = max(cpu_s - user_s, 0.0)
        run_memory = self.run_memory
        self.work, misfit = self._fit(user_s, PLAUSIBLE_NS, run_memory.latency)
        self.scale = 1 / max(misfit, 1.0)
        at_ends = [
            (ns, self._fit(user_s, PLAUSIBLE_NS, ns)[0])
            for ns in (run_memory.low, run_memory.high)
            if ns != run_memory.latency
        ]
        if self.work.chained:
            bounds = (PLAUSIBLE_NS / 2, PLAUSIBLE_NS * 2, _NO_BOUND)
            self.other_works = [self._fit(user_s, bound, run_memory.latency)[0] for bound in bounds]
        if run_memory is self.near:
            self.near_works = at_ends
        else:
            self.other_works += [work for _, work in at_ends]
        return misfit

    def near_time_ns(self) -> float:
        """CPU time of the whole run with all data near."""
        cost = self.costs(self.near, [[]])[0]
        return cost.time_ns / (self.share_of(cost.instructions) or 1.0)

    def assume(self) -> None:
        """Assume the work of a partial trace, whose CPU time is unknown: instructions take a
        typical time, and for intervals half of it and the maximum plausible time."""
        self.other_works = [Work(self.work.instruction_ns / 2), Work(PLAUSIBLE_NS)]

    def _fit(self, user_s: float, max_ns: float, near_ns: float) -> tuple[Work, float]:
        """Explain a time by instructions of at most ``max_ns``; then chained loads; then both."""
        free = [Work(ns) for ns in (*(n for n in _INSTRUCTION_NS if n < max_ns), max_ns)]
        wanted, times = user_s * 1e9, self._times(free, near_ns)
        if wanted <= times[0]:
            return free[0], times[0] / wanted if wanted > 0 else 1.0
        if wanted <= times[-1]:
            return Work(_between([w.instruction_ns for w in free], times, wanted)), 1.0
        times = self._times([Work(max_ns, share) for share in _CHAINED], near_ns)
        if wanted <= times[-1]:
            return Work(max_ns, _between(_CHAINED, times, wanted)), 1.0
        slow = [max_ns * factor for factor in _BEYOND]
        times = self._times([Work(ns, 1.0) for ns in slow], near_ns)
        return Work(_between(slow, times, wanted), 1.0), 1.0

    def _times(self, works: Sequence[Work], near_ns: float) -> list[float]:
        """Times of the whole run where it was measured, in ns; earlier results are reused."""
        run_memory = self.run_memory.at(near_ns)
        new = [work for work in works if (work, near_ns) not in self._timed]
        costs = self._run([(run_memory, run_memory, self.core.at(work), []) for work in new])
        for work, cost in zip(new, costs, strict=True):
            time_ns = cost.time_ns / (self.share_of(cost.instructions) or 1.0)
            self._timed[work, near_ns] = time_ns
        return [self._timed[work, near_ns] for work in works]

    def share_of(self, instructions: int) -> float:
        """The fraction of the run that this many instructions are."""
        return instructions / self.traced.instructions if self.traced.instructions else 1.0

    def costs(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[Cost]:
        """The cost of each placement."""
        return self.costs_under(far, placements, [Assumed(self.core, far.latency, self.work)])[0]

    def costs_under(
        self,
        far: Memory,
        placements: Sequence[Iterable[int]],
        assumptions: Sequence[Assumed],
    ) -> list[list[Cost]]:
        """The cost of each placement under each assumption, in one pass; equal ones run once."""
        flags = [tuple(self._flags(placement)) for placement in placements]
        cases = [(i, each) for i in range(len(assumptions)) for each in dict.fromkeys(flags)]
        costs = self._run(
            (
                *self._memories(assumptions[i], far),
                assumptions[i].core.at(assumptions[i].work),
                list(each),
            )
            for i, each in cases
        )
        found = dict(zip(cases, costs, strict=True))
        return [
            [self._whole(found[i, each], each, far, assumed.touches) for each in flags]
            for i, assumed in enumerate(assumptions)
        ]

    def _memories(self, assumed: Assumed, far: Memory) -> tuple[MemoryTuple, MemoryTuple]:
        near_ns = self.near.latency if assumed.near_ns is None else assumed.near_ns
        near_walk, far_walk = assumed.walks
        return self.near.at(near_ns, near_walk), far.at(assumed.far_ns, far_walk)

    def kernel_ns(self, instructions: int) -> float:
        """CPU time of the kernel, in a part of the run."""
        return self.system_s * 1e9 * self.share_of(instructions)

    def first_touches_ns(
        self, number: int, far: Memory, factors: tuple[float, float] = (1.0, 1.0)
    ) -> float:
        """First-touch times of a site's pages on far memory less those on near memory."""
        return self.traced.first_touches_ns(
            number,
            (self.near.touch * factors[0], self.near.large_pages),
            (far.touch * factors[1], far.large_pages),
        )

    def _near_touches_ns(self) -> float:
        """First touches of all pages on near memory less those where they were measured."""
        run_memory, near = self.run_memory, self.near
        ends = (run_memory.touch, run_memory.large_pages), (near.touch, near.large_pages)
        if ends[0] == ends[1]:
            return 0.0
        return sum(self.traced.first_touches_ns(n, *ends) for n in range(len(self.traced.sites)))

    def _whole(
        self, cost: Cost, flags: Sequence[int], far: Memory, factors: tuple[float, float]
    ) -> Cost:
        """Add the kernel's time, and the additional first-touch time of pages that are not where
        they were measured."""
        share = self.share_of(cost.instructions)
        sites, added = list(cost.sites), self._near_touches_ns() * share
        for number, is_far in enumerate(flags):
            if is_far:
                touching = self.first_touches_ns(number, far, factors) * share
                sites[number] = replace(sites[number], added_touch_ns=touching)
                added += touching
        kernel_ns = max(self.kernel_ns(cost.instructions) + added, 0.0)
        return replace(cost, time_ns=cost.time_ns + kernel_ns, sites=tuple(sites))

    def _flags(self, placement: Iterable[int]) -> list[int]:
        flags = [0] * len(self.traced.sites)
        for site in placement:
            flags[site] = 1
        return flags

    def _run(self, requests: Iterable[CostRequest]) -> list[Cost]:
        return [
            Cost(
                cost["cpu_ns"] * self.scale,
                cost["stall_ns"] * self.scale,
                cost["instructions"],
                tuple(SiteCost(*site[:5], site[5] * self.scale) for site in cost["sites"]),
            )
            for cost in self.traced.sample.costs(list(requests))
        ]
