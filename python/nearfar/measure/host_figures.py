"""Figures of a host from the times of its chases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nearfar.measure import last_cache
from nearfar.measure.chases import AT_ONCE, REVISITED, SPACED, Chase, Spacing
from nearfar.measure.host_regions import SPACINGS, Regions
from nearfar.measure.session import Samples
from nearfar.measure.tiers import origin_of
from nearfar.records.figures import Origin
from nearfar.records.profile import Figure, Host
from nearfar.stats import Estimate, median
from nearfar.units import PAGE_BYTES

SOURCE = "nearfar"
#: If the caches held more than this fraction of a region, they are assumed to have held all of it.
_WHOLE = 0.85
#: A load from the last cache takes less than this fraction of a load from memory.
_FAR_FROM_MEMORY = 0.25


def cache_levels(regions: Regions, times: Mapping[Chase, Estimate]) -> dict[str, Figure]:
    """The latency of each level of the caches, and of memory."""
    found = {level: times[regions.once(level)] for level in regions.levels}
    figures = {key: figure_of(estimate) for key, estimate in found.items()}
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
        return measured("ns", alone, alone, max(alone, levels["l3_load_ns"].value))
    revisited = times[Chase("thp", regions.levels["l3_load_ns"], REVISITED, AT_ONCE)].low * AT_ONCE
    found = min(max(2 * revisited - l2, l2), alone)
    return measured("ns", found, l2, alone)


def reorder_window(regions: Regions, times: Mapping[Chase, Estimate]) -> Figure:
    """Nanoseconds of software that a core executes while it waits for a load from memory.

    With S seconds of instructions between loads that do not wait for each other, a load takes
    S + L/(1 + window/S) in memory. The range has software whose instructions all write registers,
    which run out first, and software that only fills the reorder buffer.
    """
    value, low, high = (
        median([_window(regions, times, spacing) for spacing in SPACINGS[kind]]).value
        for kind in ("integers", "registers", "empty")
    )
    note = "software executed ahead of a load from memory; between chases with instructions"
    return measured("ns", value, min(low, value), max(high, value), note=note)


def _window(regions: Regions, times: Mapping[Chase, Estimate], spacing: Spacing) -> float:
    levels = "l1_load_ns", "near_read_latency_ns"
    first, memory = (times[regions.once(level)].value for level in levels)
    software, in_memory = (times[regions.once(level, SPACED, spacing)].value for level in levels)
    latency = memory - first
    overlap = latency / max(in_memory - software, latency / SPACED)
    return max(overlap - 1, 0.0) * software


def held_by_caches(
    host: Host, regions: Regions, times: Mapping[Chase, Estimate], levels: Mapping[str, Figure]
) -> dict[str, Figure]:
    """Bytes of each region that the caches held, for one chase and for several."""
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
    """Bytes C of each region R that the caches held.

    Solves R·t = L2·t_2 + (C - L2)·t_3 + (R - C)·t_memory, where all times are those for this number
    of chases.
    """
    l2, most = host.scalar("l2_bytes"), host.scalar("l3_bytes")
    t2, t3 = ((levels[key].value or 0.0) / chains for key in ("l2_load_ns", "l3_load_ns"))
    memory = times[regions.once("near_read_latency_ns", chains)].value

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


def translation(host: Host, regions: Regions, samples: Samples[Chase]) -> dict[str, Figure]:
    """The times of a hit in the second TLB level and of page walks.

    The additional latency on small pages is d = p_2·t_hit + p_walk·t_walk, in each epoch. The
    probabilities p follow from random accesses, of which each TLB level holds as many pages as it
    has entries. The times of page walks are adjusted so that they never fall as the region grows.
    """
    first, last = (host.scalar(f"{level}_entries") * PAGE_BYTES for level in ("dtlb", "stlb"))
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
    return {"stlb_hit_ns": figure_of(hit), "page_walk_by_region_ns": walks}


def _longer(samples: Samples[Chase], region: int) -> list[float]:
    """Additional time in ns of a random load on small pages, for each epoch."""
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


def figure_of(estimate: Estimate, tier: str = "dram") -> Figure:
    """A measured time in ns, on a tier."""
    origin, note = origin_of(tier, persistent=tier != "dram")
    return measured("ns", estimate.value, estimate.low, estimate.high, origin, note or None)


def measured(
    unit: str,
    value: float,
    low: float,
    high: float,
    origin: Origin = Origin.MEASURED,
    note: str | None = None,
) -> Figure:
    """A figure that this host was measured to have, from ``low`` to ``high``."""
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
