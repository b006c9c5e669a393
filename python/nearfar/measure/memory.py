"""The figures of a memory of this machine, as cache misses of a program see them, by page size.

- Latency: a random chase on huge pages, over a region that exceeds every cache.
- Page walk, by region: the additional time on small pages. It grows with the region, because page
  tables of larger regions no longer fit into the second cache, then not into the last one; the same
  holds for the hypervisor's page tables.
- Overlapped page walk, by region: the same with n concurrent chases, whose walks overlap; the
  additional time is multiplied by n.
- First touch: the time of the first touch of a page.
- Parallelism: the latency of one chase over that of the best number of concurrent chases.
- Bandwidth: that of one thread.

Figures are lower quartiles over epochs on fresh memory (bandwidths: upper quartiles), because
disturbances only make a measurement slower.

If other programs ran during a short measurement, the range extends to what an undisturbed machine
may reach:

- Latency: the best of all passes. The low end is its value in the CPU time of the threads instead
  of their wall time.
- Bandwidth: the median of passes in CPU time, because a pass over arrays takes longer than a thread
  runs on a busy CPU. The high end is twice the bandwidth of the fastest kernel, because another
  program that uses memory all the time can halve the bandwidth of all passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from nearfar._native import ArrayBench, LatencyProbe, NativeError, parse_tier
from nearfar.machine.root import Root
from nearfar.measure.ceiling import check_latency, check_rate
from nearfar.measure.session import Samples, cpu_share
from nearfar.measure.tiers import origin_of
from nearfar.noise import MIN_CPU_SHARE
from nearfar.records.figures import Origin
from nearfar.records.profile import DISTURBED, Figure
from nearfar.stats import Estimate, lower_quartile, median
from nearfar.units import MIB

if TYPE_CHECKING:
    from nearfar._native import Usage

#: The shortest of consecutive samples is used.
_SAMPLES, _SAMPLE_NS = 5, 3_000_000
_WARM_STEPS = 1 << 16
_CHAINS = (1, 4, 8, 12, 16)
#: Chases at once for overlapped page walks: as many as independent look-ups keep in flight.
_OVERLAPPED = 4
#: Curves of page walks over regions, by the number of chases at once.
WALKS_BY_REGION = {
    "page_walk_by_region_ns": 1,
    "overlapped_page_walk_by_region_ns": _OVERLAPPED,
}
_ARRAY_BYTES, _PASSES = 64 * MIB, 3
#: Further passes over arrays until the fastest was not preempted and another one agrees with it.
_MOST_PASSES, _AGREES = 24, 0.95
#: Other programs that use memory all the time at most halve a bandwidth.
_CONTENTION = 2.0
#: Smallest fraction of its time that a thread is taken to have run.
_LEAST_SHARE = 0.05
_KERNELS = ("read", "ntwrite")
#: Region of the page walks of small programs, and of first touches that are repeated.
SMALL_REGION = 64 * MIB
_TOUCHES = 2
#: Region of the page walks of large programs, at most this fraction of the available memory: its
#: page tables take 1 MiB, as much as a second cache.
LARGE_REGION, _LARGE_FRACTION = 512 * MIB, 0.125
SMALL_PAGE, LARGE_PAGE = 4096, 2 * MIB
_LARGE = ("thp", "2m", "1g")
_THP = "sys/kernel/mm/transparent_hugepage/enabled"
#: Relative uncertainty of a figure from a few epochs within a minute.
DRIFT = 0.05
#: The same while other programs run.
_DISTURBED_DRIFT = 0.1


class Timed(NamedTuple):
    """A timed quantity on a tier with a fixed page size."""

    #: ``load`` (of concurrent chases over a region), ``touch`` (of a page), ``read`` or
    #: ``ntwrite``.
    what: str
    tier: str
    region_bytes: int = 0
    chains: int = 1


def variants(tier: str) -> list[str]:
    """The tier on small pages and on huge pages; only the tier itself if it has other pages.

    Both variants are measured together, so that they have the same latency.
    """
    spec = parse_tier(tier)
    if spec["maps"] != "memory" or spec["profile"] or spec["pages"] not in ("system", "4k", "thp"):
        return [tier]
    plain = tier.replace(f",pages={spec['pages']}", "")
    return [f"{plain},pages=4k", f"{plain},pages=thp"]


def on_pages(tier: str) -> str:
    """The variant of a tier that a program gets if it does not choose a page size."""
    found = variants(tier)
    if len(found) == 1 or tier in found:
        return tier
    return found[1] if large_pages_everywhere() else found[0]


def large_pages_everywhere() -> bool:
    """Whether programs get huge pages without a request."""
    return "[always]" in (Root().text(_THP) or "")


@dataclass(frozen=True)
class MemoryPlan:
    """All variants of a tier, measured on one CPU.

    ``region_bytes`` exceeds every cache. Page walks are timed on regions up to ``large_bytes``.
    """

    tiers: tuple[str, ...]
    cpu: int
    region_bytes: int
    large_bytes: int = 0

    @property
    def grid(self) -> Sequence[Timed]:
        """All timed quantities."""
        loads = [
            *product(self.tiers, self.regions, WALKS_BY_REGION.values()),
            *product(self.tiers[-1:], [self.region_bytes], _CHAINS),
        ]
        others = [Timed(what, tier) for tier in self.tiers for what in ("touch", *_KERNELS)]
        return [*(Timed("load", *load) for load in dict.fromkeys(loads)), *others]

    @property
    def regions(self) -> tuple[int, ...]:
        """Regions of the chases."""
        largest = max(self.region_bytes, self.large_bytes)
        further = {SMALL_REGION, self.large_bytes or largest, self.region_bytes, largest}
        return tuple(sorted({min(region, largest) for region in further}))

    def epoch(self, seed: int) -> Samples[Timed]:
        """Fresh memory of each variant."""
        samples: Samples[Timed] = Samples()
        for tier in self.tiers:
            self._loads(tier, seed, samples)
            for _ in range(_TOUCHES):
                self._touch(tier, LatencyProbe(tier, SMALL_REGION, self.cpu), SMALL_REGION, samples)
            self._rates(tier, samples)
        return samples

    def _loads(self, tier: str, seed: int, samples: Samples[Timed]) -> None:
        most = self.regions[-1]
        probe = LatencyProbe(tier, most, self.cpu)
        self._touch(tier, probe, most, samples)
        for region in self.regions:
            probe.prepare(region, 64, seed, _WARM_STEPS)
            for timed in self.grid:
                if timed[:3] != ("load", tier, region):
                    continue
                taken = [probe.sample_chains(timed.chains, _SAMPLE_NS) for _ in range(_SAMPLES)]
                best = min(taken, key=lambda sample: sample["latency_ns"])
                least = best["latency_ns"]
                samples.add(timed, check_latency(least, timed.chains, f"a chase on {tier}"), taken)
                samples.companions.setdefault(timed, []).append(cpu_share([best]))

    def _touch(self, tier: str, probe: LatencyProbe, region: int, samples: Samples[Timed]) -> None:
        samples.add(Timed("touch", tier), probe.touch_ns() * page_bytes(tier) / region, [])

    def _rates(self, tier: str, samples: Samples[Timed]) -> None:
        bench = ArrayBench(tier, tier, tier, _ARRAY_BYTES // 8, [self.cpu])
        for kernel in _KERNELS:
            passes: list[Pass] = []
            while not _is_settled(passes):
                one = bench.repeat(kernel, [self.cpu])
                rate = check_rate(one["counted_bytes"] / one["seconds"], 1, f"{kernel} on {tier}")
                passes.append(Pass(rate, cpu_share(one["members"]), one["members"]))
            best = max(passes, key=lambda one: one.rate)
            used = [member for one in passes for member in one.members]
            samples.add(Timed(kernel, tier), best.rate, used)
            samples.companions.setdefault(Timed(kernel, tier), []).append(best.cpu_share)

    def smaller(self) -> MemoryPlan | None:
        """None: no point can be dropped."""
        return None


class Pass(NamedTuple):
    """One pass over arrays: its bandwidth, and the fraction of its time that its thread ran."""

    rate: float
    cpu_share: float
    members: Sequence[Usage]


def _is_settled(passes: Sequence[Pass]) -> bool:
    """Whether the fastest pass was not preempted and another one agrees with it; or no more passes
    are worth their time."""
    if len(passes) < _PASSES:
        return False
    best, second = sorted(passes, key=lambda one: one.rate, reverse=True)[:2]
    calm = best.cpu_share >= MIN_CPU_SHARE and second.rate >= _AGREES * best.rate
    return calm or len(passes) >= _MOST_PASSES


def page_bytes(tier: str) -> int:
    """Bytes of a page of a tier as far as its first touches go."""
    return LARGE_PAGE if parse_tier(tier)["pages"] in _LARGE else SMALL_PAGE


def plan_of(tier: str, cpu: int, region_bytes: int) -> MemoryPlan:
    """The plan of a tier: its variants that can be mapped. Raises NativeError if it cannot be."""
    found = variants(tier)
    if len(found) > 1:
        try:
            LatencyProbe(found[-1], LARGE_PAGE, cpu)
        except NativeError:  # no huge pages: all of the latency is attributed to the memory
            found = found[:1]
    LatencyProbe(found[0], LARGE_PAGE, cpu)
    available = Root().kib("proc/meminfo", "MemAvailable") or 0
    large = min(LARGE_REGION, int(available * _LARGE_FRACTION) // LARGE_PAGE * LARGE_PAGE)
    return MemoryPlan(tuple(found), cpu, region_bytes, large)


@dataclass
class MemoryMeter:
    """A measurement in progress of all variants of a tier."""

    plan: MemoryPlan
    samples: Samples[Timed] = field(default_factory=Samples)

    def over(self, region_bytes: int) -> MemoryMeter:
        """A meter of the same memory over another region, without samples."""
        return MemoryMeter(replace(self.plan, region_bytes=region_bytes))

    def epoch(self, seed: int) -> None:
        """Measure everything once more."""
        self.samples.gather(self.plan.epoch(seed))

    def figures(
        self, source: str, *, short: bool, disturbed: bool = False
    ) -> dict[str, dict[str, Figure]]:
        """Figures by variant, as in a device profile; ``short``: measured within a minute;
        ``disturbed``: and other programs ran."""
        drift = (_DISTURBED_DRIFT if disturbed else DRIFT) if short else 0.0
        samples = self.samples
        return _Figures(
            self.plan, samples.raw, samples.companions, source, drift, short and disturbed
        ).by_tier()


@dataclass(frozen=True)
class _Figures:
    """Derives the figures of all variants of a tier from their samples.

    ``drift`` is a relative uncertainty that widens each interval. ``ran``: fractions of the best
    samples' time that their threads ran, by epoch.
    """

    plan: MemoryPlan
    samples: Mapping[Timed, Sequence[float]]
    ran: Mapping[Timed, Sequence[float]]
    source: str
    drift: float
    disturbed: bool

    def by_tier(self) -> dict[str, dict[str, Figure]]:
        """All figures by variant. All variants have the latency on the largest pages."""
        alone = {"read_latency_ns": self._latency(), "read_parallelism": self._parallelism()}
        return {tier: {**alone, **self._of(tier)} for tier in self.plan.tiers}

    def _of(self, tier: str) -> dict[str, Figure]:
        pages = Figure(
            unit="B",
            value=page_bytes(tier),
            source=self.source,
            confidence="A",
            origin=Origin.CLAIMED,
            note=_pages(tier),
        )
        return {
            "page_bytes": pages,
            "first_touch_ns": self._first_touch(tier),
            **{key: self._walks(tier, chains) for key, chains in WALKS_BY_REGION.items()},
            **{
                f"{kernel}_bandwidth_by_threads_bytes_per_s": self._rate(kernel, tier)
                for kernel in _KERNELS
            },
        }

    def _figure(self, values: Sequence[float], unit: str, tier: str, note: str) -> Figure:
        found = lower_quartile(values)
        origin, emulated = origin_of(tier)
        return Figure(
            unit=unit,
            value=found.value,
            low=found.low * (1 - self.drift),
            high=found.high * (1 + self.drift),
            source=self.source,
            confidence="A" if origin is Origin.MEASURED else "B",
            origin=origin,
            note="; ".join(filter(None, (note, emulated))),
        )

    def _chases(self, chains: int = 1) -> Sequence[float]:
        return self.samples[Timed("load", self._base, self.plan.region_bytes, chains)]

    @property
    def _base(self) -> str:
        return self.plan.tiers[-1]  # huge pages, if there are any

    def _latency(self) -> Figure:
        note = f"random over {self.plan.region_bytes} B, {_pages(self._base)}"
        figure = self._figure(self._chases(), "ns", self._base, note)
        if not self.disturbed:
            return figure
        timed = Timed("load", self._base, self.plan.region_bytes)
        best, share = min(self._chases()), max(self.ran.get(timed, [1.0]))
        update = {
            "value": best,
            "low": min(best * min(share, 1.0) * (1 - self.drift), figure.low or best),
            "note": f"{DISTURBED}; {note}",
        }
        return figure.model_copy(update=update)

    def _parallelism(self) -> Figure:
        best = min(_CHAINS[1:], key=lambda n: lower_quartile(self._chases(n)).value)
        pairs = zip(self._chases(), self._chases(best), strict=True)
        ratios = [max(one / many, 1.0) for one, many in pairs]
        return self._figure(ratios, "count", self._base, f"{best} chains against one")

    def _first_touch(self, tier: str) -> Figure:
        """The time of a first touch, with an interval up to the upper quartile.

        The first touch is several times slower for memory that the hypervisor has to supply first.
        A program may get such memory or other memory.
        """
        touches = self.samples[Timed("touch", tier)]
        figure = self._figure(touches, "ns", tier, "of a page")
        slow = 1 / lower_quartile([1 / touch for touch in touches]).value
        return figure.model_copy(update={"high": max(figure.high or 0.0, slow * (1 + self.drift))})

    def _walks(self, tier: str, chains: int) -> Figure:
        """Additional latency on this tier's pages by region, epoch by epoch, with as many chases at
        once."""
        points, ranges = [], []
        for region in self.plan.regions:
            timed = Timed("load", tier, region, chains), Timed("load", self._base, region, chains)
            pairs = zip(*(self.samples[each] for each in timed), strict=True)
            found = median([chains * max(small - huge, 0.0) for small, huge in pairs])
            value, low, high = found.value, found.low * (1 - self.drift), found.high
            if self.disturbed:
                value, low = self._best_walk(*timed, found)
            points.append([float(region), value])
            ranges.append((low, high * (1 + self.drift)))
        note = "a random load on these pages less one on huge pages"
        if chains > 1:
            note += f", times {chains}, with {chains} in flight"
        return Figure(
            unit="ns",
            x=["region_bytes"],
            points=points,
            ranges=ranges,
            source=self.source,
            confidence="A",
            origin=origin_of(tier)[0],
            note=f"{DISTURBED}; {note}" if self.disturbed else note,
        )

    def _best_walk(self, small: Timed, huge: Timed, found: Estimate) -> tuple[float, float]:
        """The difference of the fastest loads, and the least that it may be without other
        programs."""
        fastest, chains = min(self.samples[huge]), small.chains
        value = min(chains * max(min(self.samples[small]) - fastest, 0.0), found.high)
        ran = min(self.samples[small]) * min(max(self.ran.get(small, [1.0])), 1.0)
        return value, min(chains * max(ran - fastest, 0.0), found.low, value) * (1 - self.drift)

    def _rate(self, kernel: str, tier: str) -> Figure:
        slowest = lower_quartile([1 / rate for rate in self.samples[Timed(kernel, tier)]])
        value, note = 1 / slowest.value, None
        low, high = (1 - self.drift) / slowest.high, (1 + self.drift) / slowest.low
        if self.disturbed:
            value = max(low, self._while_running(Timed(kernel, tier)))
            fastest = max(
                self._while_running(Timed(kernel, tier))
                for kernel in _KERNELS
                for tier in self.plan.tiers
            )
            note, high = f"{DISTURBED}; of the CPU time of its thread", _CONTENTION * fastest
        return Figure(
            unit="B/s",
            x=["threads"],
            points=[[1.0, value]],
            ranges=[(low, high)],
            note=note,
            source=self.source,
            confidence="A",
            origin=origin_of(tier)[0],
        )

    def _while_running(self, timed: Timed) -> float:
        """The median bandwidth of passes in the CPU time of their thread. A guest's kernel may
        subtract stolen time of another moment from the CPU time of a pass, which makes the pass
        look too short; the bandwidth is therefore limited to what contention explains."""
        rates = self.samples[timed]
        shares = self.ran.get(timed, [1.0] * len(rates))
        pairs = zip(rates, shares, strict=True)
        running = median([rate / max(share, _LEAST_SHARE) for rate, share in pairs]).value
        return max(min(running, _CONTENTION * max(rates)), max(rates))


def _pages(tier: str) -> str:
    return "huge pages" if page_bytes(tier) == LARGE_PAGE else "4 KiB pages"
