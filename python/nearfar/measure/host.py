"""Measure this machine as a host: loads by level, the last cache, page walks, flushes, memories.

- Cache levels: chases on huge pages give the latency of each level.
- Last cache: if a chase takes longer than in the last cache and less than in memory, its latency
  shows which part of its region the caches held. Other users of the cache leave this part; a
  program that requests more lines, or requests them more often, gets a larger part. The effective
  size follows from all regions together (``last_cache``).
- Page walks: the additional latency on 4 KiB pages is caused by page walks and by hits in the
  second TLB level. The sizes of the TLB levels determine how many of each occur.
- Prefetchers: a chase in address order over a large region gives their speed, with page walks.
- Flushes: the times of clwb and clflushopt on few lines show whether a flush keeps its line.

A measurement consists of epochs, each on fresh memory. The caller may spread them over minutes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nearfar import store
from nearfar._native import NativeError, PersistenceProbe, persist_instructions
from nearfar.errors import MachineError
from nearfar.measure import last_cache
from nearfar.measure.chases import AT_ONCE, IN_TURN, ONCE, REVISITED, Chase, ChasePlan
from nearfar.measure.latency import octaves
from nearfar.measure.memory import MemoryMeter, plan_of
from nearfar.measure.session import Samples, Session
from nearfar.measure.tiers import origin_of
from nearfar.noise import Watch
from nearfar.profiles.this_host import this_host
from nearfar.records.profile import DISTURBED, Figure, Host, Measured
from nearfar.records.shape import Origin
from nearfar.stats import Estimate, lower_quartile, median
from nearfar.units import MIB

SOURCE = "nearfar"
LARGEST = 128 * MIB
#: The largest region of chases that visit each line twice. Linking a larger one takes too long.
MAX_REVISITED = 64 * MIB
FLUSHED_BYTES = 256 * 1024
FLUSH_NS = 3_000_000
FLUSH_REPEATS = 5
LINES_A_FENCE = 4
#: Entries and ways of the first and the last TLB level of x86 servers since 2017. They are used
#: only if neither CPU nor hypervisor reports them, because reported values agree better with
#: chases.
TLB = {"dtlb_entries": 64, "dtlb_ways": 4, "stlb_entries": 2048, "stlb_ways": 16}
_PAGE = 4096
#: If the caches held more than this fraction of a region, they are assumed to have held all of it.
_WHOLE = 0.85
#: A load from the last cache takes less than this fraction of a load from memory.
_FAR_FROM_MEMORY = 0.25
#: A measurement is complete after this number of epochs over this time, because the use of the
#: cache by other programs changes within minutes.
WHOLE_EPOCHS, WHOLE_S = 4, 60.0


@dataclass(frozen=True)
class Regions:
    """Regions of the chases, in bytes."""

    #: One region for each level, by the key of its latency.
    levels: dict[str, int]
    #: Regions whose lines are visited twice a round.
    revisited: tuple[int, ...]
    #: Regions larger than the reach of the first TLB level and smaller than that of the second.
    within: tuple[int, ...]
    #: Regions larger than the reach of the second TLB level.
    walked: tuple[int, ...]

    @staticmethod
    def of(host: Host, largest: int, steps_per_octave: int) -> Regions:
        """The regions for the cache sizes of a host.

        Regions of cache levels are well below the size of their cache. That of the last cache is
        only twice the second cache, because other programs may use most of the last cache.
        """
        l1, l2 = (int(host.scalar(key)) for key in ("l1d_bytes", "l2_bytes"))
        most = min(largest, MAX_REVISITED)
        first, reach = (int(host.scalar(f"{level}_entries")) * _PAGE for level in ("dtlb", "stlb"))
        walked = octaves(2 * reach, max(4 * reach, most), steps_per_octave, ONCE)
        revisited = sorted({*octaves(2 * l2, most, steps_per_octave, ONCE), *walked})
        return Regions(
            {
                "l1_load_ns": l1 // 2,
                "l2_load_ns": l2 // 4,
                "l3_load_ns": 2 * l2,
                "near_read_latency_ns": largest,
            },
            tuple(revisited),
            tuple(region for region in revisited if 2 * first <= region <= reach // 2),
            tuple(walked),
        )

    def chases(self) -> tuple[Chase, ...]:
        """All chases. The chase over memory runs alone, and as several concurrent ones."""
        largest = self.levels["near_read_latency_ns"]
        return (
            *(Chase("thp", region, ONCE, 1) for region in self.levels.values()),
            Chase("thp", largest, ONCE, AT_ONCE),
            *(Chase("thp", r, REVISITED, n) for r in self.revisited for n in (1, AT_ONCE)),
            *(Chase("4k", r, REVISITED, 1) for r in (*self.within, *self.walked)),
            Chase("4k", largest, IN_TURN, 1),
        )


@dataclass
class HostMeter:
    """A measurement in progress: epochs of this host and of memories of it, by tier."""

    session: Session
    cpu: int
    tiers: Sequence[str] = ()
    largest: int = LARGEST
    steps_per_octave: int = 2
    epochs: int = 0
    disturbed: bool = False
    _chases: Samples[Chase] = field(default_factory=Samples)
    _memories: list[MemoryMeter] = field(default_factory=list)
    _flushes: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._host = _with_tlb(this_host())
        self._regions = Regions.of(self._host, self.largest, self.steps_per_octave)
        self._memories = meters_of(self.tiers, self.cpu, self.largest)
        self._started, self._since = store.now(), time.monotonic()

    def epoch(self) -> None:
        """Measure everything once.

        Raises MachineError without huge pages, because latencies of loads on small pages cannot be
        separated from page walks.
        """
        watch = Watch("host profile")
        seed = self.session.seed + self.epochs
        cache = int(_reported(self._host, "l3_bytes"))
        chases = ChasePlan(self._regions.chases(), self.cpu, cache)
        try:
            self._chases.gather(chases.epoch(seed))
            if not self.epochs:
                self._memories = [memory.over(self._beyond_caches()) for memory in self._memories]
            for memory in self._memories:
                memory.epoch(seed)
        except NativeError as error:
            raise MachineError(
                f"this host cannot be measured: {error.args[1]}",
                "allow transparent huge pages (madvise), or name a host file with --host",
            ) from None
        for key, value in _flush_times(self.cpu).items():
            self._flushes.setdefault(key, []).append(value)
        self.epochs += 1
        for usages in (self._chases.usages, *(each.samples.usages for each in self._memories)):
            watch.threads(usages)
            usages.clear()
        self.session.noise.judge(watch)
        self.disturbed = self.disturbed or watch.verdict().noisy

    def host(self) -> Host:
        """This machine as measured so far."""
        elapsed_s = time.monotonic() - self._since
        short = self.epochs < WHOLE_EPOCHS or elapsed_s < WHOLE_S
        raw = self._chases.raw
        times = {chase: lower_quartile(raw[chase]) for chase in raw}
        levels = _levels(self._regions, times)
        stream = Chase("4k", self._regions.levels["near_read_latency_ns"], IN_TURN, 1)
        figures = {
            **self._host.figures,
            **levels,
            **_held(self._host, self._regions, times, levels),
            **self._last_cache(short=short),
            **_translation(self._host, self._regions, self._chases),
            "near_stream_line_ns": _figure(times[stream]),
            **{key: _figure(median(found), "shm:") for key, found in self._flushes.items()},
        }
        memories: dict[str, dict[str, Figure]] = {}
        for memory in self._memories:
            memories |= memory.figures(SOURCE, short=short, disturbed=self.disturbed)
        seed = f"seed {self.session.seed}"
        return self._host.model_copy(
            update={
                "description": "The machine nearfar runs on. Latencies and the usable part of the "
                "last cache were measured; other sizes are reported by the system.",
                "sources": {**self._host.sources, SOURCE: f"measured here by nearfar, {seed}"},
                "figures": figures,
                "memories": memories,
                "measured": Measured(
                    started=self._started,
                    ended=store.now(),
                    epochs=self.epochs,
                    provisional=short,
                    disturbed=self.disturbed,
                ),
            }
        )

    def _beyond_caches(self) -> int:
        """Size of a region that exceeds the caches, given the measurements so far."""
        return beyond_caches(self._last_cache(short=True).get("l3_bytes"), self.largest)

    def _last_cache(self, *, short: bool) -> dict[str, Figure]:
        """The effective last cache; empty if the host reports no last cache.

        If other programs ran in a short measurement, the interval extends to the reported size, of
        which more may be available without them.
        """
        reported = _reported(self._host, "l3_bytes")
        if not reported:
            return {}
        l2_bytes, seed = self._host.scalar("l2_bytes"), self.session.seed
        groups = [self._sweeps(chains) for chains in (1, AT_ONCE)]
        found = last_cache.interval(groups, l2_bytes, reported, short=short, seed=seed)
        value, low, high = found
        note = f"of {reported:.0f} B that the system reports; as an LRU cache, fitted to chases"
        if short and self.disturbed:
            high = max(high, reported)
            note += f"; {DISTURBED}, which keep some of it"
        return {"l3_bytes": _measured("B", value, low, high, note=note)}

    def _sweeps(self, chains: int) -> last_cache.Sweeps:
        raw, regions = self._chases.raw, self._regions
        revisited = [raw[Chase("thp", r, REVISITED, chains)] for r in regions.revisited]
        second = raw[Chase("thp", regions.levels["l2_load_ns"], ONCE, 1)]
        largest = regions.levels["near_read_latency_ns"]
        return last_cache.Sweeps(
            regions.revisited,
            np.array(revisited).T,
            np.array(second) / chains,
            np.array(raw[Chase("thp", largest, ONCE, chains)]),
        )


def meters_of(tiers: Sequence[str], cpu: int, region_bytes: int) -> list[MemoryMeter]:
    """One meter for each memory; ``region_bytes`` has to exceed the caches."""
    plans = dict.fromkeys(plan_of(tier, cpu, region_bytes) for tier in tiers)
    return [MemoryMeter(plan) for plan in plans]


def beyond_caches(last: Figure | None, least: int = LARGEST) -> int:
    """Size of a region that exceeds the last cache of the measured size.

    The reported size is not used. On a virtual machine with few CPUs, it may be that of a whole
    server. In a region that exceeds so large a cache, translations of huge pages take time, too.
    """
    return max(least, 4 * int(last.value or 0) if last else 0)


def _reported(host: Host, key: str) -> float:
    figure = host.figures.get(key)
    return figure.value or 0.0 if figure else 0.0


def measure(session: Session, cpu: int, epochs: int) -> Host:
    """Measure the latencies of this machine's caches; its memories are not measured."""
    meter = HostMeter(session, cpu)
    for _ in range(epochs):
        meter.epoch()
    return meter.host()


def _with_tlb(host: Host) -> Host:
    """Add the TLB that the CPU reports, or an assumed one."""
    if all(key in host.figures for key in TLB):
        return host
    assumed = {
        key: Figure(unit="count", value=value, source="assumed", confidence="C")
        for key, value in TLB.items()
    }
    return host.model_copy(
        update={
            "figures": {**host.figures, **assumed},
            "sources": {**host.sources, "assumed": "what x86 servers have had since 2017"},
        }
    )


def _levels(regions: Regions, times: Mapping[Chase, Estimate]) -> dict[str, Figure]:
    found = {key: times[Chase("thp", region, ONCE, 1)] for key, region in regions.levels.items()}
    figures = {key: _figure(estimate) for key, estimate in found.items()}
    return {**figures, "l3_load_ns": _last_level(regions, times, found)}


def _last_level(
    regions: Regions, times: Mapping[Chase, Estimate], levels: Mapping[str, Estimate]
) -> Figure:
    """The latency of a hit in the last cache.

    It is that of a chase over a region somewhat larger than the second cache. If other programs
    evict this region from the last cache, it is derived from several concurrent chases, which keep
    more lines in the cache. Half of their loads hit in the second cache.
    """
    alone, l2 = levels["l3_load_ns"].low, levels["l2_load_ns"].value
    if alone <= _FAR_FROM_MEMORY * levels["near_read_latency_ns"].value:
        return _measured("ns", alone, alone, max(alone, levels["l3_load_ns"].value))
    revisited = times[Chase("thp", regions.levels["l3_load_ns"], REVISITED, AT_ONCE)].low * AT_ONCE
    found = min(max(2 * revisited - l2, l2), alone)
    return _measured("ns", found, l2, alone)


def _held(
    host: Host, regions: Regions, times: Mapping[Chase, Estimate], levels: Mapping[str, Figure]
) -> dict[str, Figure]:
    """How many bytes of each region the caches held, for one chase and for several."""
    if "l3_bytes" not in host.figures:
        return {}
    return {
        key: _held_by(host, regions, times, levels, chains)
        for key, chains in (
            ("l3_held_by_region_bytes", 1),
            ("l3_held_at_once_by_region_bytes", AT_ONCE),
        )
    }


def _held_by(
    host: Host,
    regions: Regions,
    times: Mapping[Chase, Estimate],
    levels: Mapping[str, Figure],
    chains: int,
) -> Figure:
    """How many bytes C of each region R the caches held.

    Solves R·t = L2·t_2 + (C - L2)·t_3 + (R - C)·t_memory, where all times are those for this number
    of chases.
    """
    l2, most = host.scalar("l2_bytes"), host.scalar("l3_bytes")
    t2, t3 = ((levels[key].value or 0.0) / chains for key in ("l2_load_ns", "l3_load_ns"))
    memory = times[Chase("thp", regions.levels["near_read_latency_ns"], ONCE, chains)].value

    def held(region: float, time: float) -> float:
        if t3 > memory / 2:  # other programs use all of the last cache
            return l2
        found = (region * (memory - time) - l2 * (t3 - t2)) / (memory - t3)
        return min(max(found, l2), region, most)

    rows: list[tuple[float, float, float, float]] = []
    for region in reversed(regions.revisited):
        time = times[Chase("thp", region, REVISITED, chains)]
        value, low, high = (held(region, t) for t in (time.value, time.high, time.low))
        if value > _WHOLE * region and rows:
            value, high = max(value, rows[-1][1]), max(high, rows[-1][3])
        low, high = max(low / last_cache.DRIFT, min(l2, value)), min(high * last_cache.DRIFT, most)
        rows.append((float(region), value, low, max(high, value)))
    rows.reverse()
    return Figure(
        unit="B",
        x=["region_bytes"],
        points=[[r, v] for r, v, _, _ in rows],
        ranges=[(low, high) for _, _, low, high in rows],
        source=SOURCE,
        confidence="A",
        origin=Origin.MEASURED,
        note=f"of a region visited at random by {chains} chases at once, from its latency",
    )


def _translation(host: Host, regions: Regions, samples: Samples[Chase]) -> dict[str, Figure]:
    """The times of a hit in the second TLB level and of page walks.

    The additional latency on small pages is d = p_2·t_hit + p_walk·t_walk, in each epoch. The
    probabilities p follow from random accesses, of which each TLB level holds as many pages as it
    has entries. The times of page walks are adjusted so that they never fall as the region grows.
    """
    first, last = (host.scalar(f"{level}_entries") * _PAGE for level in ("dtlb", "stlb"))
    hits = [d / (1 - first / r) for r in regions.within for d in _longer(samples, r)]
    hit = median([max(time, 0.0) for time in hits] or [0.0])
    estimates = [
        median(
            [
                (d - (last - first) / region * hit.value) / (1 - last / region)
                for d in _longer(samples, region)
            ]
        )
        for region in regions.walked
    ]
    values = _rising([max(estimate.value, 0.0) for estimate in estimates])
    walks = Figure(
        unit="ns",
        x=["region_bytes"],
        points=[[float(r), v] for r, v in zip(regions.walked, values, strict=True)],
        ranges=[
            (max(min(v, e.low), 0.0), max(v, e.high))
            for v, e in zip(values, estimates, strict=True)
        ],
        source=SOURCE,
        confidence="A",
        origin=Origin.MEASURED,
        note="a load on 4 KiB pages less one on huge pages, random over the region, by the share "
        "of loads that the TLB cannot serve",
    )
    return {"stlb_hit_ns": _figure(hit), "page_walk_by_region_ns": walks}


def _longer(samples: Samples[Chase], region: int) -> list[float]:
    """By how many ns a random load takes longer on small pages, for each epoch."""
    small, huge = (samples.series[Chase(pages, region, REVISITED, 1)] for pages in ("4k", "thp"))
    return [s - h for s, h in zip(small, huge, strict=True)]


def _rising(values: Sequence[float]) -> list[float]:
    """The nearest non-decreasing sequence (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, m), (b, n) = blocks[-2:]
            blocks[-2:] = [((a * m + b * n) / (m + n), m + n)]
    return [value for value, count in blocks for _ in range(count)]


def _flush_times(cpu: int) -> dict[str, float]:
    """Times of a store, a flush and a fence on cached lines, and of one more line per fence."""
    keys = {"clwb": "near_flush_latency_ns", "clflushopt": "near_evicting_flush_latency_ns"}
    known = [how for how in keys if how in persist_instructions()]
    if not known:
        return {}
    probe = PersistenceProbe("shm:", FLUSHED_BYTES, cpu)
    times: dict[str, list[float]] = {how: [] for how in known}
    more: list[float] = []
    for _ in range(FLUSH_REPEATS):
        for how in known:
            times[how].append(probe.sample(how, 64, 1, FLUSH_NS)["fence_ns"])
        several = probe.sample(known[0], 64, LINES_A_FENCE, FLUSH_NS)["fence_ns"]
        more.append(max(several - times[known[0]][-1], 0.0) / (LINES_A_FENCE - 1))
    figures = {keys[how]: median(values).value for how, values in times.items()}
    return {**figures, "near_flushed_line_ns": median(more).value}


def _figure(estimate: Estimate, tier: str = "dram") -> Figure:
    origin, note = origin_of(tier, persistent=tier != "dram")
    return _measured("ns", estimate.value, estimate.low, estimate.high, origin, note or None)


def _measured(
    unit: str,
    value: float,
    low: float,
    high: float,
    origin: Origin = Origin.MEASURED,
    note: str | None = None,
) -> Figure:
    return Figure(
        unit=unit,
        value=value,
        low=low,
        high=high,
        source=SOURCE,
        confidence="A",
        origin=origin,
        note=note,
    )
