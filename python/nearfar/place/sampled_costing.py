"""Costs of placements, from stalls that were sampled while the program ran natively.

Every sample at an access stands for time that the access waited. From its address follows how
likely the access missed each cache and the TLB (``model.reuse``), and so its expected cost c in
near memory:

    c = (1 - m2) l2 + m2 (1 - m3) l3 + m2 m3 latency + p walk

with m2, m3 and p the probabilities of missing the second cache, the last cache and the TLB. Walks
overlap, and so are shorter, unless the address was just loaded. Samples of time t then are
n = t / (c - h) consecutive waits; overlapping accesses count as one wait. h is the part of a miss
that other instructions hide: 0 if the address was just loaded, otherwise at most the time to fill
the reorder window, and at most the time of the instructions around the access. In far memory each
wait takes c_far instead of c. Time outside of accesses is the same.

If near memory is not the memory that the samples were taken on (``run_memory``), c is its cost in
that memory, and each wait takes c_near in near memory. Slowdowns are against the predicted run with
all data near, which then differs from the measured one.

A stream does not wait for latency but for bandwidth: its lines follow from the course of its
addresses (``model.streams``), and the loop takes at least as long as its lines take on their
memories.

First touches of pages are added as in ``costing``.

The interval of a slowdown spans the variants of the inputs, and the sampling error together with
that of the model itself, which is proportional to the stalls. Where the data of many samples is
unknown, it reaches to what they would add on far memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar.model.reuse import miss_fractions
from nearfar.place.costing import Cost, SiteCost
from nearfar.place.memory_costs import TLB_ENTRIES, Memory, PageWalk
from nearfar.place.samples import ProgramSamples, Stalls
from nearfar.place.uncertainty import touch_ends, walk_ends
from nearfar.records.advice import MUCH_UNKNOWN
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Hits of the second and the last cache in ns, where the host does not say: those of server cores
#: of the last decade at 3 GHz (14 and 50 cycles; Intel Optimization Reference Manual).
L2_NS, L3_NS = 4.5, 16.0
#: Most of a miss that a window of instructions hides, in ns: 448 instructions at four a cycle and
#: 4 GHz.
FILL_NS = 28.0
#: Accesses in flight if no address depends on a load; their rate is higher by this factor.
_OVERLAP = 4.0
_ROUNDS = 4
_MIN_WAIT_NS = 1.0
#: Relative range of a footprint that is estimated from the density of 8 neighbors.
_SPREADS = (0.7, 1.4)
_TWO_SIDED_95 = 1.96
#: Error of the model itself, at 95 %, as a fraction of the stalls on far data. It covers the
#: differences to the measured times of the seven programs in benchmarks/sampled_stalls (all data on
#: 4 KiB pages, against huge pages). The model was built with the same programs: this is not a
#: validation.
MODEL_ERROR = 0.25


@dataclass(frozen=True)
class CacheSizes:
    """The caches that samples may have hit: bytes and hit times in ns; 0 bytes: none."""

    l2: int
    llc: int
    llc_ends: tuple[int, ...] = ()
    l2_ns: float = L2_NS
    l3_ns: float = L3_NS


@dataclass(frozen=True)
class _Assumed:
    """One variant of the inputs; ``run_ns``: of the memory that the samples were taken on."""

    near_ns: float
    far_ns: float
    run_ns: float
    llc: int
    spread: float = 1.0
    fill_ns: float = FILL_NS
    touches: tuple[float, float] | None = None
    walks: tuple[PageWalk, PageWalk] | None = None


@dataclass(frozen=True)
class _Accesses:
    """Accesses of one place in the code to one site, as costed: waits in a row by sample, and the
    probabilities of misses."""

    stalls: Stalls
    waits: Floats
    from_memory: Floats
    walks_run: Floats
    walks_near: Floats
    walks_far: Floats
    lines: float  # of a stream


class SampledCoster:
    """Samples, near memory and caches. A placement is the set of sites that lie far.

    ``run_memory``: the memory that the samples were taken on, None for near memory; ``cpu_s``: CPU
    time on it.
    """

    def __init__(
        self,
        data: ProgramSamples,
        near: Memory,
        caches: CacheSizes,
        cpu_s: float,
        run_memory: Memory | None = None,
    ) -> None:
        self.data, self.near, self.caches, self.cpu_s = data, near, caches, cpu_s
        self.run_memory = run_memory or near
        self._known: dict[tuple[_Assumed, bool], list[_Accesses]] = {}

    def costs(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[Cost]:
        """The cost of each placement."""
        assumed = self._central(far)
        return [self._cost(far, assumed, frozenset(each)) for each in placements]

    def near_time_ns(self) -> float:
        """CPU time with all data near: the measured one, if the samples were taken there."""
        return self.costs(self.near, [[]])[0].time_ns

    def _central(self, far: Memory) -> _Assumed:
        return _Assumed(self.near.latency, far.latency, self.run_memory.latency, self.caches.llc)

    def counted(self) -> ProgramSamples:
        """The data with estimated reads and writes of each site: waits in a row, not lines, where
        accesses overlap."""
        cost = self.costs(self.near, [[]])[0]
        sites = [
            replace(site, reads=counts.reads + counts.prefetches, writes=counts.writes)
            for site, counts in zip(self.data.sites, cost.sites, strict=True)
        ]
        return replace(self.data, sites=tuple(sites))

    def slowdowns(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[list[float]]:
        """Slowdowns of the placements under each variant of the inputs."""
        sets = [frozenset(each) for each in placements]
        made = []
        for assumed in self._variants(far):
            near = self._cost(far, assumed, frozenset())
            made.append([self._cost(far, assumed, each).time_ns / near.time_ns for each in sets])
        near_ns = self.near_time_ns()
        errors = [
            math.hypot(self._sampling_error(far, each), self._model_error(each)) / near_ns
            for each in sets
        ]
        central = [cost.time_ns / near_ns for cost in self.costs(far, sets)]
        ends = list(zip(central, errors, strict=True))
        least = 1.0 if far.latency > self.near.latency else 0.0  # slower memory saves no time
        made.append([max(c - e, min(c, least)) for c, e in ends])
        made.append([c + e for c, e in ends])
        unknown = self._unknown_ns(far) / near_ns
        made.append([c + unknown if each else c for c, each in zip(central, sets, strict=True)])
        return made

    def _variants(self, far: Memory) -> list[_Assumed]:
        near, run_memory, base = self.near, self.run_memory, self._central(far)
        together = far.latency == near.latency
        ends = {(near.low, far.low if together else far.high), (near.high, far.high)}
        if not together:
            ends = {(near.low, far.high), (near.high, far.low)}
        return [
            *(
                replace(base, near_ns=low, far_ns=high, run_ns=low if run_memory is near else end)
                for low, high in ends
                for end in (
                    (low,)
                    if run_memory is near
                    else (run_memory.latency, run_memory.low, run_memory.high)
                )
            ),
            *(replace(base, llc=size) for size in self.caches.llc_ends),
            *(replace(base, spread=factor) for factor in _SPREADS),
            replace(base, fill_ns=0.0),
            replace(base, fill_ns=2 * FILL_NS),
            *(replace(base, touches=pair) for pair in touch_ends(near, far)),
            *(replace(base, walks=pair) for pair in walk_ends(near, far)),
        ]

    def _sampling_error(self, far: Memory, placement: frozenset[int]) -> float:
        """Half of the 95 % interval of a time in ns, from the counts of samples (Poisson)."""
        assumed = self._central(far)
        variance = 0.0
        for each in self._accesses(far, assumed):
            if each.stalls.site in placement and each.stalls.streamed_bytes is None:
                added = self._far_ns(each, far, assumed) - self._near_ns(each, assumed)
                variance += added**2 / each.stalls.samples
        return _TWO_SIDED_95 * math.sqrt(variance)

    def _model_error(self, placement: frozenset[int]) -> float:
        """Half of the 95 % interval of a time in ns, from the error of the model itself."""
        stalled_ns = sum(each.stall_ns for each in self.data.stalls if each.site in placement)
        return MODEL_ERROR * stalled_ns

    def _unknown_ns(self, far: Memory) -> float:
        """Upper bound of the time that samples without an address add, if they are many: all their
        time is waits for memory, and all their data is far."""
        if self.data.unknown_share <= MUCH_UNKNOWN:
            return 0.0
        longer = max(far.latency / self.run_memory.latency - 1, 0.0)
        return self.data.unknown_share * self.data.user_ns * longer

    def _cost(self, far: Memory, assumed: _Assumed, placement: frozenset[int]) -> Cost:
        accesses = self._accesses(far, assumed)
        sites = [_Sum() for _ in self.data.sites]
        for each in accesses:
            added = 0.0
            if each.stalls.streamed_bytes is None:
                is_far = each.stalls.site in placement
                added = self._far_ns(each, far, assumed) if is_far else self._near_ns(each, assumed)
            sites[each.stalls.site].take(each, added)
        for site, added in self._streams_ns(accesses, far, placement):
            sites[site].stall_ns += added
        time_ns = self.cpu_s * 1e9
        made = []
        for number, one in enumerate(sites):
            touch = self._first_touches_ns(number, far, assumed) if number in placement else 0.0
            time_ns += one.stall_ns - one.run_ns + touch + self._near_touches_ns(number)
            made.append(one.cost(touch))
        return Cost(time_ns, sum(one.stall_ns for one in sites), 0, tuple(made))

    def _first_touches_ns(self, number: int, far: Memory, assumed: _Assumed) -> float:
        near_ns, far_ns = assumed.touches or (self.near.touch, far.touch)
        return self.data.first_touches_ns(
            number, (near_ns, self.near.large_pages), (far_ns, far.large_pages)
        )

    def _near_touches_ns(self, number: int) -> float:
        """First touches of a site's pages on near memory less those where it was observed."""
        run_memory, near = self.run_memory, self.near
        return self.data.first_touches_ns(
            number, (run_memory.touch, run_memory.large_pages), (near.touch, near.large_pages)
        )

    def _far_ns(self, each: _Accesses, far: Memory, assumed: _Assumed) -> float:
        """Time that waits take longer in far memory than where they were observed."""
        run_walk, _, far_walk = self._walks(each.stalls, far, assumed)
        latency = each.from_memory * (assumed.far_ns - assumed.run_ns)
        walks = each.walks_far * far_walk - each.walks_run * run_walk
        return float((each.waits * (latency + walks)).sum())

    def _near_ns(self, each: _Accesses, assumed: _Assumed) -> float:
        """Time that waits take longer in near memory than where they were observed."""
        run_walk, near_walk, _ = self._walks(each.stalls, self.near, assumed)
        latency = each.from_memory * (assumed.near_ns - assumed.run_ns)
        walks = each.walks_near * near_walk - each.walks_run * run_walk
        return float((each.waits * (latency + walks)).sum())

    def _walks(self, stalls: Stalls, far: Memory, assumed: _Assumed) -> tuple[float, float, float]:
        """Page walks of accesses where the samples were taken, near and far, in ns. Those on pages
        of the same size as near memory's are one measurement with it."""
        near_walk, far_walk = assumed.walks or (self.near.walk, far.walk)
        same = (self.run_memory.walk, self.run_memory.page_shift) == (
            self.near.walk,
            self.near.page_shift,
        )
        run_walk, dependent = near_walk if same else self.run_memory.walk, stalls.follows_pointer
        return (
            run_walk.of(dependent=dependent),
            near_walk.of(dependent=dependent),
            far_walk.of(dependent=dependent),
        )

    def _streams_ns(
        self, accesses: list[_Accesses], far: Memory, placement: frozenset[int]
    ) -> list[tuple[int, float]]:
        """Time that loops of streams take beyond their measured time, by site. A near memory with
        more bandwidth than that of the run does not make them faster: what else bounds them is not
        known."""
        found = []
        for loop, loop_ns in self.data.loops_ns.items():
            streams = [each for each in accesses if each.stalls.loop == loop and each.lines]
            run_ns = sum(_stream_ns(each, self.run_memory) for each in streams)
            fitted = min(loop_ns / run_ns, 1.0) if run_ns else 1.0  # not faster than the run
            by_site = [
                (each, fitted * _stream_ns(each, memory))
                for each in streams
                for memory in [far if each.stalls.site in placement else self.near]
            ]
            total = sum(ns for _, ns in by_site)
            longer = [
                (each.stalls.site, ns)
                for each, ns in by_site
                if each.stalls.site in placement or self.run_memory is not self.near
            ]
            share = sum(ns for _, ns in longer)
            if total > loop_ns and share:
                found += [(site, (total - loop_ns) * ns / share) for site, ns in longer]
        return found

    def _accesses(self, far: Memory, assumed: _Assumed) -> list[_Accesses]:
        """All accesses, as costed where they were observed."""
        key = (replace(assumed, far_ns=0.0, touches=None), far.large_pages)
        if key not in self._known:
            self._known[key] = self._costed(far, assumed)
        return self._known[key]

    def _costed(self, far: Memory, assumed: _Assumed) -> list[_Accesses]:
        stalls = self.data.stalls
        spans = [each.spans * assumed.spread for each in stalls]
        waits = [each.spans * 0 + each.stall_ns / each.samples / L3_NS for each in stalls]
        run_walks = [self._walks(each, far, assumed)[0] for each in stalls]
        for _ in range(_ROUNDS):
            rates = [self._rates(*pair) for pair in zip(stalls, waits, strict=True)]
            l2, l3 = (_misses(stalls, spans, rates, size) for size in (self.caches.l2, assumed.llc))
            run_tlb = _tlb_misses(spans, rates, self.run_memory)
            fresh = []
            for i, each in enumerate(stalls):
                hit = (1 - l2[i]) * self.caches.l2_ns + l2[i] * (1 - l3[i]) * self.caches.l3_ns
                cost = hit + l2[i] * l3[i] * assumed.run_ns + run_tlb[i] * run_walks[i]
                fresh.append(each.stall_ns / each.samples / _exposed(cost, each, assumed.fill_ns))
            waits = fresh
        near_tlb, far_tlb = (_tlb_misses(spans, rates, memory) for memory in (self.near, far))
        return [
            _Accesses(
                each,
                waits[i],
                l2[i] * l3[i],
                run_tlb[i],
                near_tlb[i],
                far_tlb[i],
                _lines(each, l2[i] * l3[i]),
            )
            for i, each in enumerate(stalls)
        ]

    def _rates(self, stalls: Stalls, waits: Floats) -> Floats:
        """Accesses of each sample; for a stream, its number of lines, including prefetched ones."""
        if stalls.streamed_bytes is None:
            return waits * (1.0 if stalls.follows_pointer else _OVERLAP)
        return waits * 0 + stalls.streamed_bytes / LINE_BYTES / len(waits)


def _misses(
    stalls: Sequence[Stalls], spans: list[Floats], rates: list[Floats], size: int
) -> list[Floats]:
    """The probability that each access misses a cache."""
    import numpy as np

    estimated = miss_fractions(spans, rates, size)
    return [
        np.ones(len(fractions)) if each.from_memory else fractions
        for each, fractions in zip(stalls, estimated, strict=True)
    ]


def _exposed(cost: Floats, stalls: Stalls, fill_ns: float) -> Floats:
    """The part of a cost that is seen as waiting."""
    import numpy as np

    hidden = np.zeros_like(cost)
    if not stalls.follows_pointer and stalls.stall_ns > 0:
        others = stalls.others_ns / stalls.stall_ns
        hidden = np.minimum(cost * others / (1 + others), fill_ns)
    return np.maximum(cost - hidden, _MIN_WAIT_NS)


def _tlb_misses(spans: list[Floats], rates: list[Floats], memory: Memory) -> list[Floats]:
    page = float(1 << memory.page_shift)
    return miss_fractions(spans, rates, TLB_ENTRIES * page, page)


def _lines(stalls: Stalls, from_memory: Floats) -> float:
    """Lines that a stream reads from memory."""
    missing = float(from_memory.mean()) if len(from_memory) else 0.0
    return (stalls.streamed_bytes or 0.0) / LINE_BYTES * missing


def _stream_ns(each: _Accesses, memory: Memory) -> float:
    """Time for which the lines of a stream occupy a memory; stored lines are read first."""
    line = memory.line + (memory.write_line if each.stalls.is_store else 0.0)
    return each.lines * line


class _Sum:
    """The account of one site."""

    def __init__(self) -> None:
        self.reads = self.lines = self.writes = self.dependent = self.walks = 0.0
        self.run_ns = self.stall_ns = 0.0

    def take(self, each: _Accesses, added_ns: float) -> None:
        """Add accesses; ``added_ns``: by how much their waits take longer than observed."""
        reads = float((each.waits * each.from_memory).sum())
        is_stream = each.stalls.streamed_bytes is not None
        self.reads += 0.0 if is_stream else reads
        self.lines += each.lines
        if each.stalls.is_store:
            self.writes += each.lines if is_stream else reads
        self.dependent += reads if each.stalls.follows_pointer else 0.0
        self.walks += float((each.waits * each.walks_near).sum())
        self.run_ns += each.stalls.stall_ns
        self.stall_ns += each.stalls.stall_ns + added_ns

    def cost(self, touch_ns: float) -> SiteCost:
        """The site's costs."""
        return SiteCost(
            reads=round(self.reads),
            prefetches=round(self.lines),
            writes=round(self.writes),
            dependent=round(self.dependent),
            walks=round(self.walks),
            stall_ns=self.stall_ns,
            added_touch_ns=touch_ns,
        )
