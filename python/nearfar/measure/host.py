"""Measure this machine as a host: loads by level, the last cache, page walks, flushes, memories.

- Cache levels: chases on huge pages give the latency of each level.
- Last cache: if a chase takes longer than in the last cache and less than in memory, its latency
  shows which part of its region the caches held. Other users of the cache leave this part; a
  program that requests more lines, or requests them more often, gets a larger part. The effective
  size follows from all regions together (``last_cache``).
- Page walks: the additional latency on 4 KiB pages is caused by page walks and by hits in the
  second TLB level. The sizes of the TLB levels determine how many of each occur.
- Reorder window: concurrent chases with instructions between their loads show how much software a
  core executes ahead of a load.
- Prefetchers: a chase in address order over a large region gives their speed, with page walks.
- Flushes: the times of clwb and clflushopt on few lines show whether a flush keeps its line.

A measurement consists of epochs, each on fresh memory. The caller may spread them over minutes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nearfar import store
from nearfar._native import NativeError, PersistenceProbe, persist_instructions
from nearfar.errors import MachineError
from nearfar.measure import last_cache
from nearfar.measure.chases import AT_ONCE, IN_TURN, REVISITED, Chase, ChasePlan
from nearfar.measure.host_figures import (
    SOURCE,
    cache_levels,
    figure_of,
    held_by_caches,
    measured,
    reorder_window,
    translation,
)
from nearfar.measure.host_regions import LARGEST, Regions
from nearfar.measure.memory import MemoryMeter, plan_of
from nearfar.measure.session import Samples, Session
from nearfar.noise import Watch
from nearfar.profiles.this_host import this_host
from nearfar.records.profile import DISTURBED, Figure, Host, HostMeasurement
from nearfar.stats import lower_quartile, median

FLUSHED_BYTES = 256 * 1024
FLUSH_NS = 3_000_000
FLUSH_REPEATS = 5
LINES_A_FENCE = 4
#: Entries and ways of the first and the last TLB level of x86 servers since 2017. They are used
#: only if neither CPU nor hypervisor reports them, because reported values agree better with
#: chases.
TLB = {"dtlb_entries": 64, "dtlb_ways": 4, "stlb_entries": 2048, "stlb_ways": 16}
#: A measurement is complete after this number of epochs over this time, because the use of the
#: cache by other programs changes within minutes.
WHOLE_EPOCHS, WHOLE_S = 4, 60.0


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
        memories: dict[str, dict[str, Figure]] = {}
        for memory in self._memories:
            memories |= memory.figures(SOURCE, short=short, disturbed=self.disturbed)
        seed = f"seed {self.session.seed}"
        return self._host.model_copy(
            update={
                "description": "The machine nearfar runs on. Latencies and the usable part of the "
                "last cache were measured; other sizes are reported by the system.",
                "sources": {**self._host.sources, SOURCE: f"measured here by nearfar, {seed}"},
                "figures": self._figures(short=short),
                "memories": memories,
                "measured": HostMeasurement(
                    started=self._started,
                    ended=store.now(),
                    epochs=self.epochs,
                    provisional=short,
                    disturbed=self.disturbed,
                ),
            }
        )

    def _figures(self, *, short: bool) -> dict[str, Figure]:
        raw = self._chases.raw
        times = {chase: lower_quartile(raw[chase]) for chase in raw}
        levels = cache_levels(self._regions, times)
        stream = Chase("4k", self._regions.levels["near_read_latency_ns"], IN_TURN, 1)
        return {
            **self._host.figures,
            **levels,
            **held_by_caches(self._host, self._regions, times, levels),
            **self._last_cache(short=short),
            **translation(self._host, self._regions, self._chases),
            "near_stream_line_ns": figure_of(times[stream]),
            "reorder_window_ns": reorder_window(self._regions, times),
            **{key: figure_of(median(found), "shm:") for key, found in self._flushes.items()},
        }

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
        return {"l3_bytes": measured("B", value, low, high, note=note)}

    def _sweeps(self, chains: int) -> last_cache.Sweeps:
        raw, regions = self._chases.raw, self._regions
        revisited = [raw[Chase("thp", r, REVISITED, chains)] for r in regions.revisited]
        second = raw[regions.once("l2_load_ns")]
        return last_cache.Sweeps(
            regions.revisited,
            np.array(revisited).T,
            np.array(second) / chains,
            np.array(raw[regions.once("near_read_latency_ns", chains)]),
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
