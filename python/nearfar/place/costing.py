"""What placements cost, by the core model of `trace`, over a sample of a trace.

The model's time of an instruction that waits for nothing is set so that the run with all data near
takes what its instructions took untraced on this machine. Where that is more than instructions
plausibly take, the rest was waiting: loads whose address was computed out of a loaded value, which
the trace does not see, are chains. The share of such loads is set so that the times agree. What the
run waited for beside (the kernel, files) is added to each placement alike. Slowdowns are ratios of
model times.

Pages of a far site that cost more (or less) to touch first than near ones add that, once for each
byte that the site held at most:

    t = Σ peak_bytes · (first_touch_far / page_far - first_touch_near / page_near)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar.place.figures import Core, CoreTuple, Memory, MemoryTuple, Work

if TYPE_CHECKING:
    from nearfar.place.traced import Traced

Placing = tuple[MemoryTuple, MemoryTuple, CoreTuple, list[int]]
#: What an instruction takes at most beside misses: two cycles at 3.3 GHz, for what waits for nearer
#: caches, wrongly guessed branches and long operations.
PLAUSIBLE_NS = 0.6
_NO_BOUND = 64.0
#: Times of an instruction, in ns, and shares of chained loads, between which the right one is
#: looked for.
_INSTRUCTION_NS = (0.01, 0.03, 0.06, 0.12, 0.2, 0.35, 0.6, 1.0, 2.0, 8.0)
_CHAINED = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
_BEYOND = (1.0, 1.5, 2.5, 5.0, 20.0, 100.0)


@dataclass(frozen=True)
class SiteCost:
    """Of one site, in the part of the run that the model went through."""

    reads: int
    prefetches: int
    writes: int
    dependent: int
    walks: int
    stall_ns: float


@dataclass(frozen=True)
class Cost:
    """Of one placement."""

    time_ns: float
    stall_ns: float
    instructions: int
    sites: tuple[SiteCost, ...]


@dataclass(frozen=True)
class Assumed:
    """A core, the latency of far memory, and the program's work."""

    core: Core
    far_ns: float
    work: Work


def _between(places: Sequence[float], times: Sequence[float], wanted: float) -> float:
    """Where rising times reach what is wanted; on a line through the last two beyond them."""
    above = next((i for i, time in enumerate(times) if time >= wanted), len(times) - 1)
    above = max(above, 1)
    slope = (times[above] - times[above - 1]) / (places[above] - places[above - 1])
    return places[above - 1] + (wanted - times[above - 1]) / slope if slope else places[above]


class Coster:
    """A trace, two memories and a core. A placement is the set of sites that lie far."""

    def __init__(self, traced: Traced, near: Memory, core: Core) -> None:
        self._traced = traced
        self.near, self.core = near, core
        self.work = Work(0.25)
        self.other_works: list[Work] = []  # that explain the measured time as well
        self.waiting_s = 0.0
        self._timed: dict[Work, float] = {}

    @property
    def every(self) -> int:
        """Of the trace's blocks, the model goes through one in so many."""
        return self._traced.sample.every

    def calibrate(self, busy_s: float, time_s: float) -> float:
        """Set the work from what a processor was busy with the program's own instructions, of a
        measured time. Returns model over measured time, 1 where they agree: above it, misses alone
        take longer than the processor did."""
        self.waiting_s = max(time_s - busy_s, 0.0)
        self.work, misfit = self._fit(busy_s, PLAUSIBLE_NS)
        if self.work.chained:
            bounds = (PLAUSIBLE_NS / 2, PLAUSIBLE_NS * 2, _NO_BOUND)
            self.other_works = [self._fit(busy_s, bound)[0] for bound in bounds]
        return misfit

    def assume(self) -> None:
        """Where the trace is of a part of the run only, whose time nobody knows: instructions take
        what they often do, and in intervals half of it, and what they plausibly do at most."""
        self.other_works = [Work(self.work.instruction_ns / 2), Work(PLAUSIBLE_NS)]

    def _fit(self, busy_s: float, most_ns: float) -> tuple[Work, float]:
        """Instructions of ``most_ns`` at most explain a time; then chained loads; then both."""
        free = [Work(ns) for ns in (*(n for n in _INSTRUCTION_NS if n < most_ns), most_ns)]
        wanted, times = busy_s * 1e9, self._times(free)
        if wanted <= times[0]:
            return free[0], times[0] / wanted if wanted > 0 else 1.0
        if wanted <= times[-1]:
            return Work(_between([w.instruction_ns for w in free], times, wanted)), 1.0
        times = self._times([Work(most_ns, share) for share in _CHAINED])
        if wanted <= times[-1]:
            return Work(most_ns, _between(_CHAINED, times, wanted)), 1.0
        slow = [most_ns * factor for factor in _BEYOND]
        times = self._times([Work(ns, 1.0) for ns in slow])
        return Work(_between(slow, times, wanted), 1.0), 1.0

    def _times(self, works: Sequence[Work]) -> list[float]:
        """Of the whole run with all data near, in ns; what was timed before is not run again."""
        near = self.near.at(self.near.latency)
        new = [work for work in works if work not in self._timed]
        costs = self._run([(near, near, self.core.at(work), []) for work in new])
        for work, cost in zip(new, costs, strict=True):
            self._timed[work] = cost.time_ns / (self.share_of(cost.instructions) or 1.0)
        return [self._timed[work] for work in works]

    def share_of(self, instructions: int) -> float:
        """The part of the run that so many instructions are."""
        return instructions / self._traced.instructions if self._traced.instructions else 1.0

    def costs(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[Cost]:
        """The cost of each placement."""
        return self.costs_under(far, placements, [Assumed(self.core, far.latency, self.work)])[0]

    def costs_under(
        self,
        far: Memory,
        placements: Sequence[Iterable[int]],
        assumptions: Sequence[Assumed],
    ) -> list[list[Cost]]:
        """The cost of each placement under each assumption; one pass."""
        near = self.near.at(self.near.latency)
        flags = [self._flags(placement) for placement in placements]
        costs = iter(self._run(
            (near, far.at(assumed.far_ns), assumed.core.at(assumed.work), each)
            for assumed in assumptions
            for each in flags
        ))  # fmt: skip
        return [[self._whole(next(costs), each, far) for each in flags] for _ in assumptions]

    def waiting_ns(self, instructions: int) -> float:
        """What the run waited for beside memory, in a part of it."""
        return self.waiting_s * 1e9 * self.share_of(instructions)

    def _whole(self, cost: Cost, flags: Sequence[int], far: Memory) -> Cost:
        """With what the run waited for beside memory, and what the first touch of far pages takes
        beyond that of near ones."""
        scale = (far.touch - self.near.touch) * self.share_of(cost.instructions)
        sites, added = list(cost.sites), 0.0
        for number, is_far in enumerate(flags):
            if is_far:
                touching = scale * float(self._traced.sizes[number].max())
                sites[number] = replace(sites[number], stall_ns=sites[number].stall_ns + touching)
                added += touching
        time_ns = max(cost.time_ns + added, 0.0) + self.waiting_ns(cost.instructions)
        return replace(cost, time_ns=time_ns, stall_ns=cost.stall_ns + added, sites=tuple(sites))

    def _flags(self, placement: Iterable[int]) -> list[int]:
        flags = [0] * len(self._traced.sites)
        for site in placement:
            flags[site] = 1
        return flags

    def _run(self, placings: Iterable[Placing]) -> list[Cost]:
        return [
            Cost(cost["time_ns"], cost["stall_ns"], cost["instructions"],
                 tuple(SiteCost(*site) for site in cost["sites"]))
            for cost in self._traced.sample.costs(list(placings))
        ]  # fmt: skip
