"""What placements cost, by the core model of `trace`, over a sample of a trace.

The model's time of an instruction that waits for nothing is set so that the run with all data near
takes the processor time that it took untraced on this machine. What it waited for beside (files, other
programs) is added to each placement alike. Slowdowns are ratios of model times.

Pages of a far site that cost more (or less) to touch first than near ones add that, once for each
byte that the site held at most:

    t = Σ peak_bytes · (first_touch_far / page_far - first_touch_near / page_near)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar.place.figures import Core, CoreTuple, Memory, MemoryTuple

if TYPE_CHECKING:
    from nearfar.place.traced import Traced

Placing = tuple[MemoryTuple, MemoryTuple, CoreTuple, list[int]]
#: Times of an instruction, in ns, between which the right one is looked for.
_INSTRUCTION_NS = (0.01, 0.03, 0.06, 0.12, 0.2, 0.35, 0.6, 1.0, 2.0)


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


class Coster:
    """A trace, two memories and a core. A placement is the set of sites that lie far."""

    def __init__(self, traced: Traced, near: Memory, core: Core) -> None:
        self._traced = traced
        self.near, self.core = near, core
        self.instruction_ns = 0.25
        self.waiting_s = 0.0

    @property
    def every(self) -> int:
        """Of the trace's blocks, the model goes through one in so many."""
        return self._traced.sample.every

    def calibrate(self, busy_s: float, time_s: float) -> float:
        """Set the time of an instruction from what a processor worked, of a measured time. Returns
        model over measured time, 1 where they agree: above it, misses alone take longer than the
        processor did."""
        self.waiting_s = max(time_s - busy_s, 0.0)
        costs = self._run(
            (self.near.at(self.near.latency), self.near.at(self.near.latency), self.core.at(ns), [])
            for ns in _INSTRUCTION_NS
        )
        wanted = busy_s * 1e9 * self.share_of(costs[0].instructions)
        times = [cost.time_ns for cost in costs]
        if wanted <= times[0]:
            self.instruction_ns = _INSTRUCTION_NS[0]
            return times[0] / wanted if wanted > 0 else 1.0
        above = next((i for i, time in enumerate(times) if time >= wanted), len(times) - 1)
        low, high = _INSTRUCTION_NS[above - 1], _INSTRUCTION_NS[above]
        slope = (times[above] - times[above - 1]) / (high - low) or 1.0
        self.instruction_ns = low + (wanted - times[above - 1]) / slope
        return 1.0

    def share_of(self, instructions: int) -> float:
        """The part of the run that so many instructions are."""
        return instructions / self._traced.instructions if self._traced.instructions else 1.0

    def costs(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[Cost]:
        """The cost of each placement."""
        return self.costs_under(far, placements, [(self.core, far.latency)])[0]

    def costs_under(
        self,
        far: Memory,
        placements: Sequence[Iterable[int]],
        assumptions: Sequence[tuple[Core, float]],
    ) -> list[list[Cost]]:
        """The cost of each placement, for each core and latency of the far memory; one pass."""
        near = self.near.at(self.near.latency)
        flags = [self._flags(placement) for placement in placements]
        costs = iter(self._run(
            (near, far.at(far_ns), core.at(self.instruction_ns), each)
            for core, far_ns in assumptions
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
