"""What predictions want to know of the processor we run on: loads by level, walks, flushes.

Chases over regions on huge pages tell the levels apart; the same on 4 KiB pages, less those, is
what page walks cost. A clwb beside a clflushopt on few lines tells whether a flush keeps its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar._native import NativeError, PersistenceProbe, persist_instructions
from nearfar.errors import MachineError
from nearfar.measure import knees, latency
from nearfar.measure.latency import LatencyPlan
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.tiers import origin_of
from nearfar.profiles.this_host import this_host
from nearfar.records.profile import Figure, Host
from nearfar.records.shape import Origin
from nearfar.stats import Estimate, median
from nearfar.units import MIB

SOURCE = "nearfar"
FLUSHED_BYTES = 256 * 1024
FLUSH_NS = 5_000_000
FLUSH_REPEATS = 15
LARGEST = 512 * MIB


@dataclass(frozen=True)
class Curves:
    """Latency by region on huge and on small pages, medians in ns."""

    huge: dict[int, Estimate]
    small: dict[int, Estimate]
    last_cache: int


def measure(session: Session, cpu: int, effort: Effort, largest: int = LARGEST) -> Host:
    """This machine as a host with its latencies. Raises MachineError without huge pages."""
    host = this_host()
    curves = _curves(session, cpu, effort, largest, host)
    figures = {
        **_levels(host, curves),
        "page_walk_by_region_ns": _walks(curves),
        **_flushes(cpu),
    }
    l3 = min(float(curves.last_cache), host.scalar("l3_bytes"))
    return host.model_copy(
        update={
            "description": "The machine nearfar runs on. Latencies were measured; sizes are what "
            "it tells of itself, but the last cache, which is no larger than loads betray.",
            "sources": {**host.sources, SOURCE: f"measured here, seed {session.seed}",
                        "assumed": "entries of the first and the last level of the TLB that "
                        "x86 servers have had since 2017: only the first matters where walks are "
                        "measured"},
            "figures": {
                **host.figures,
                **figures,
                "l3_bytes": _measured("B", l3, l3, l3),
                **{key: Figure(unit="count", value=value, source="assumed", confidence="C")
                   for key, value in (("dtlb_entries", 64), ("dtlb_ways", 4),
                                      ("stlb_entries", 2048), ("stlb_ways", 16))},
            },
        }
    )  # fmt: skip


def _curves(session: Session, cpu: int, effort: Effort, largest: int, host: Host) -> Curves:
    series: list[dict[int, Estimate]] = []
    for pages in ("thp", "4k"):
        plan = LatencyPlan(f"dram,pages={pages}", cpu, largest, steps_per_octave=2)
        try:
            samples, _ = session.repeat(f"latency, {pages} pages", "ns", plan, effort,
                                        judge_spread=False)  # fmt: skip
        except NativeError as error:
            raise MachineError(
                f"latencies of this host cannot be measured: {error.args[1]}",
                "allow transparent huge pages (madvise), or name a host file with --host",
            ) from None
        series.append(_medians(samples))
    huge, small = series
    found = knees.find(sorted(huge), [huge[r].value for r in sorted(huge)])
    last = latency.effective_last_cache(found) or int(host.scalar("l3_bytes"))
    return Curves(huge, small, last)


def _medians(samples: Samples[int]) -> dict[int, Estimate]:
    return {region: median(samples.of(region)) for region in sorted(samples.series)}


def _levels(host: Host, curves: Curves) -> dict[str, Figure]:
    """Well inside of each level: half of the first two, between the second and the third."""
    l1, l2 = host.scalar("l1d_bytes"), host.scalar("l2_bytes")
    places = {
        "l1_load_ns": l1 / 2,
        "l2_load_ns": l2 / 2,
        "l3_load_ns": max((l2 * curves.last_cache) ** 0.5, 2 * l2),
        "near_read_latency_ns": max(curves.huge),
    }
    return {key: _figure(_nearest(curves.huge, place)) for key, place in places.items()}


def _nearest(curve: dict[int, Estimate], place: float) -> Estimate:
    return curve[min(curve, key=lambda region: abs(region - place))]


def _walks(curves: Curves) -> Figure:
    regions = sorted(set(curves.huge) & set(curves.small))
    points, ranges = [], []
    for region in regions:
        small, huge = curves.small[region], curves.huge[region]
        value = max(small.value - huge.value, 0.0)
        points.append([float(region), value])
        ranges.append((min(max(small.low - huge.high, 0.0), value), max(small.high - huge.low, value)))
    return Figure(
        unit="ns", x=["region_bytes"], points=points, ranges=ranges, source=SOURCE,
        confidence="A", origin=Origin.MEASURED,
        note="a load on 4 KiB pages less one on huge pages, random over the region",
    )  # fmt: skip


def _flushes(cpu: int) -> dict[str, Figure]:
    """One store, flush and fence on lines that the caches hold, by instruction, on tmpfs."""
    keys = {"clwb": "near_flush_latency_ns", "clflushopt": "near_evicting_flush_latency_ns"}
    known = [how for how in keys if how in persist_instructions()]
    probe = PersistenceProbe("shm:", FLUSHED_BYTES, cpu)
    times: dict[str, list[float]] = {how: [] for how in known}
    for _ in range(FLUSH_REPEATS):
        for how in known:
            times[how].append(probe.sample(how, 64, 1, FLUSH_NS)["fence_ns"])
    figures = {keys[how]: _figure(median(values), "shm:") for how, values in times.items()}
    pairs = {"clwb": [probe.sample("clwb", 64, 4, FLUSH_NS)["fence_ns"] / 4 for _ in range(5)]}
    if "clwb" in known:
        figures["near_flushed_line_ns"] = _figure(median(pairs["clwb"]), "shm:")
    return figures


def _figure(estimate: Estimate, tier: str = "dram") -> Figure:
    origin, note = origin_of(tier, persistent=tier != "dram")
    return _measured("ns", estimate.value, estimate.low, estimate.high, origin, note or None)


def _measured(
    unit: str, value: float, low: float, high: float, origin: Origin = Origin.MEASURED,
    note: str | None = None,
) -> Figure:  # fmt: skip
    return Figure(
        unit=unit, value=value, low=low, high=high, source=SOURCE, confidence="A", origin=origin,
        note=note,
    )  # fmt: skip


def needed(host: Host, keys: Sequence[str]) -> bool:
    """Whether a host lacks any of these figures."""
    return any(key not in host.figures for key in keys)
