"""What placements cost, by the core model of `trace`: one pass over a trace for many of them.

The model's time of an instruction that waits for nothing is set so that the run with all data near
takes what it took untraced on this machine. Slowdowns are ratios of model times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar import _native
from nearfar.place.figures import Core, CoreTuple, Memory, MemoryTuple

#: Records that the model goes through; of longer traces it takes blocks at even distances.
MOST_RECORDS = 2_000_000
_BLOCK = 1 << 16
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

    def __init__(self, trace: Path, records: int, sites: int, near: Memory, core: Core) -> None:
        self.every = max(1, -(-records // MOST_RECORDS)) if records > 2 * _BLOCK else 1
        self._trace, self._sites = trace, sites
        self.near, self.core = near, core
        self.instruction_ns = 0.25

    def calibrate(self, time_s: float, instructions: int) -> float:
        """Set the time of an instruction from a measured time. Returns model over measured time,
        1 where they agree: above it, misses alone take longer than the whole run did."""
        costs = self._run(
            (self.near.at(self.near.latency), self.near.at(self.near.latency), self.core.at(ns), [])
            for ns in _INSTRUCTION_NS
        )
        share = costs[0].instructions / instructions if instructions else 1.0
        wanted = time_s * 1e9 * share
        times = [cost.time_ns for cost in costs]
        if wanted <= times[0]:
            self.instruction_ns = _INSTRUCTION_NS[0]
            return times[0] / wanted if wanted > 0 else 1.0
        above = next((i for i, time in enumerate(times) if time >= wanted), len(times) - 1)
        low, high = _INSTRUCTION_NS[above - 1], _INSTRUCTION_NS[above]
        slope = (times[above] - times[above - 1]) / (high - low) or 1.0
        self.instruction_ns = low + (wanted - times[above - 1]) / slope
        return 1.0

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
        return [[next(costs) for _ in flags] for _ in assumptions]

    def _flags(self, placement: Iterable[int]) -> list[int]:
        flags = [0] * self._sites
        for site in placement:
            flags[site] = 1
        return flags

    def _run(self, placings: Iterable[Placing]) -> list[Cost]:
        found = _native.trace_costs(str(self._trace), list(placings), self.every)
        return [
            Cost(cost["time_ns"], cost["stall_ns"], cost["instructions"],
                 tuple(SiteCost(*site) for site in cost["sites"]))
            for cost in found
        ]  # fmt: skip
