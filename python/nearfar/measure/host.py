"""Measure the host parameters of predictions: loads by level, page walks, flushes.

Chases on huge pages give the latency of each level. If a random chase takes longer than in the last
cache and less than in memory, its latency gives the part of its region that the caches held: the
part that neighbors leave, which grows with the amount and frequency of requests. The additional
latency on 4 KiB pages is that of page walks and of hits of the second TLB level; the sizes of the
TLB give how many of each occur for a number of pages. A chase in address order along a large region
gives the speed of the prefetchers, including translations. The times of clwb and clflushopt on few
lines show whether a flush keeps its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nearfar._native import NativeError, PersistenceProbe, persist_instructions
from nearfar.errors import MachineError
from nearfar.measure.chases import IN_TURN, ONCE, REVISITED, Chase, ChasePlan
from nearfar.measure.latency import octaves
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.tiers import origin_of
from nearfar.profiles.this_host import this_host
from nearfar.records.profile import Figure, Host
from nearfar.records.shape import Origin
from nearfar.stats import Estimate, lower_quartile, median
from nearfar.units import MIB

SOURCE = "nearfar"
LARGEST = 128 * MIB
#: The largest region that is revisited: linking a larger one takes long.
MOST_REVISITED = 64 * MIB
#: Concurrent chases: about as many gets as a core overlaps.
AT_ONCE = 3
FLUSHED_BYTES = 256 * 1024
FLUSH_NS = 3_000_000
FLUSH_REPEATS = 15
LINES_A_FENCE = 4
#: Entries and ways of the first and the last TLB level of x86 servers since 2017. Used if CPU or
#: hypervisor do not report them: reported values agree better with chases here.
TLB = {"dtlb_entries": 64, "dtlb_ways": 4, "stlb_entries": 2048, "stlb_ways": 16}
_PAGE = 4096
#: A region of which the caches hold more than this fraction is taken as held whole.
_WHOLE = 0.85
#: A load from the last cache takes less than this fraction of a load from memory.
_FAR_FROM_MEMORY = 0.25
#: Factor by which the part of the last cache that neighbors leave may change within a minute.
_NEIGHBOURS = 1.5


@dataclass(frozen=True)
class Regions:
    """Regions of the chases, in bytes."""

    levels: dict[str, int]
    revisited: tuple[int, ...]
    within: tuple[int, ...]  #: the TLB's second level, and beyond its first
    walked: tuple[int, ...]

    @staticmethod
    def of(host: Host, largest: int, steps_per_octave: int) -> Regions:
        """Regions well inside each cache; that of the last cache just exceeds the second."""
        l1, l2 = (int(host.scalar(key)) for key in ("l1d_bytes", "l2_bytes"))
        most = min(largest, MOST_REVISITED)
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
        """All chases; that of memory also with several at once."""
        largest = self.levels["near_read_latency_ns"]
        return (
            *(Chase("thp", region, ONCE, 1) for region in self.levels.values()),
            Chase("thp", largest, ONCE, AT_ONCE),
            *(Chase("thp", r, REVISITED, n) for r in self.revisited for n in (1, AT_ONCE)),
            *(Chase("4k", r, REVISITED, 1) for r in (*self.within, *self.walked)),
            Chase("4k", largest, IN_TURN, 1),
        )


def measure(
    session: Session, cpu: int, effort: Effort, largest: int = LARGEST, steps_per_octave: int = 2
) -> Host:
    """Describe this machine as a host with its latencies.

    Raises MachineError without huge pages, which separate loads from page walks.
    """
    host = _with_tlb(this_host())
    regions = Regions.of(host, largest, steps_per_octave)
    samples = _chased(session, ChasePlan(regions.chases(), cpu), effort)
    times = {chase: lower_quartile(samples.raw[chase]) for chase in samples.raw}
    levels = _levels(regions, times)
    figures = {
        **host.figures,
        **levels,
        **_held(host, regions, times, levels),
        **_translation(host, regions, samples),
        "near_stream_line_ns": _figure(
            times[Chase("4k", regions.levels["near_read_latency_ns"], IN_TURN, 1)]
        ),
        **_flushes(cpu),
    }
    return host.model_copy(
        update={
            "description": "The machine nearfar runs on. Latencies were measured, and with them "
            "how much of the last cache is usable; other sizes are reported by the system.",
            "sources": {**host.sources, SOURCE: f"measured here by nearfar, seed {session.seed}"},
            "figures": figures,
        }
    )


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


def _chased(session: Session, plan: ChasePlan, effort: Effort) -> Samples[Chase]:
    try:
        samples, _ = session.repeat("chases", "ns", plan, effort, judge_spread=False)
    except NativeError as error:
        raise MachineError(
            f"latencies of this host cannot be measured: {error.args[1]}",
            "allow transparent huge pages (madvise), or name a host file with --host",
        ) from None
    return samples


def _levels(regions: Regions, times: Mapping[Chase, Estimate]) -> dict[str, Figure]:
    found = {key: times[Chase("thp", region, ONCE, 1)] for key, region in regions.levels.items()}
    figures = {key: _figure(estimate) for key, estimate in found.items()}
    return {**figures, "l3_load_ns": _last_level(regions, times, found)}


def _last_level(
    regions: Regions, times: Mapping[Chase, Estimate], levels: Mapping[str, Estimate]
) -> Figure:
    """The last cache's latency: of a load that neighbors' evictions did not send to memory.

    If they evict everything, use several concurrent chases, which hold more, over twice the size
    of the second cache: half of their loads hit in it.
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
    """Bytes of each region that the caches held, by one and several chases; the middle value."""
    curves = {
        key: _held_by(host, regions, times, levels, chains)
        for key, chains in (
            ("l3_held_by_region_bytes", 1),
            ("l3_held_at_once_by_region_bytes", AT_ONCE),
        )
    }
    values = sorted(point[-1] for curve in curves.values() for point in curve.points or [])
    middle = values[len(values) // 2]
    return {**curves, "l3_bytes": _measured("B", middle, values[0], values[-1])}


def _held_by(
    host: Host,
    regions: Regions,
    times: Mapping[Chase, Estimate],
    levels: Mapping[str, Figure],
    chains: int,
) -> Figure:
    """From R·t = L2·t_2 + (C - L2)·t_3 + (R - C)·t_memory, each t for this number of chases."""
    l2, most = host.scalar("l2_bytes"), host.scalar("l3_bytes")
    t2, t3 = ((levels[key].value or 0.0) / chains for key in ("l2_load_ns", "l3_load_ns"))
    memory = times[Chase("thp", regions.levels["near_read_latency_ns"], ONCE, chains)].value

    def held(region: float, time: float) -> float:
        if t3 > memory / 2:  # neighbors use the last cache
            return l2
        found = (region * (memory - time) - l2 * (t3 - t2)) / (memory - t3)
        return min(max(found, l2), region, most)

    rows: list[tuple[float, float, float, float]] = []
    for region in reversed(regions.revisited):
        time = times[Chase("thp", region, REVISITED, chains)]
        value, low, high = (held(region, t) for t in (time.value, time.high, time.low))
        if value > _WHOLE * region and rows:
            value, high = max(value, rows[-1][1]), max(high, rows[-1][3])
        low, high = max(low / _NEIGHBOURS, min(l2, value)), min(high * _NEIGHBOURS, most)
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
    """Small pages less huge ones, epoch by epoch: d = p_2·t_hit + p_walk·t_walk over pages at
    random, of which each level of the TLB holds as many as it has entries. Walks are made to rise
    with the region.
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
    """Additional time of a random load on small pages, in ns, for each epoch."""
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


def _flushes(cpu: int) -> dict[str, Figure]:
    """One store, flush and fence on cached lines on tmpfs; and one more line under the fence."""
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
    figures = {keys[how]: _figure(median(values), "shm:") for how, values in times.items()}
    figures["near_flushed_line_ns"] = _figure(median(more), "shm:")
    return figures


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
