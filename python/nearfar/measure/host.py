"""What predictions want to know of the processor we run on: loads by level, walks, flushes.

Chases over regions on huge pages tell the levels apart; the same on 4 KiB pages, less those, is
what page walks cost. Where a region lies between the second cache and memory, its latency tells how
much of it the last cache held: that is the size a neighbour leaves us. A clwb beside a clflushopt
on few lines tells whether a flush keeps its line.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearfar._native import NativeError, PersistenceProbe, persist_instructions
from nearfar.errors import MachineError
from nearfar.measure.latency import LatencyPlan
from nearfar.measure.session import Effort, Session
from nearfar.measure.tiers import origin_of
from nearfar.profiles.this_host import this_host
from nearfar.records.profile import Figure, Host
from nearfar.records.shape import Origin
from nearfar.stats import Estimate, lower_quartile, median
from nearfar.units import MIB

SOURCE = "nearfar"
LARGEST = 256 * MIB
FLUSHED_BYTES = 256 * 1024
FLUSH_NS = 3_000_000
FLUSH_REPEATS = 15
LINES_A_FENCE = 4
#: Of x86 servers since 2017: entries and ways of the first and the last level of the TLB.
TLB = {"dtlb_entries": 64, "dtlb_ways": 4, "stlb_entries": 2048, "stlb_ways": 16}
#: A latency between those of the last cache and of memory tells a share, away from both.
_LEAST_SHARE, _MOST_SHARE = 0.1, 0.85
#: How much larger the last cache may be than the most that a cycle found in it.
_MORE_CACHE = 1.5
_PAGE = 4096


@dataclass(frozen=True)
class Curves:
    """Latency by region on huge and on small pages, in ns."""

    huge: dict[int, Estimate]
    small: dict[int, Estimate]


def measure(session: Session, cpu: int, effort: Effort, largest: int = LARGEST) -> Host:
    """This machine as a host with its latencies.

    Raises MachineError where there are no huge pages to tell loads from page walks.
    """
    host = this_host()
    curves = Curves(
        *(
            _curve(
                session,
                LatencyPlan(f"dram,pages={pages}", cpu, largest, samples_per_epoch=5),
                effort,
            )
            for pages in ("thp", "4k")
        )
    )
    levels = _levels(host, curves.huge)
    figures = {
        **host.figures,
        **levels,
        "l3_bytes": _last_cache(host, curves.huge, levels),
        "page_walk_by_region_ns": _walks(curves),
        **_flushes(cpu),
        **{key: Figure(unit="count", value=value, source="assumed", confidence="C")
           for key, value in TLB.items()},
    }  # fmt: skip
    return host.model_copy(
        update={
            "description": "The machine nearfar runs on. Latencies were measured, and with them "
            "how much of the last cache is really there; other sizes are what it tells of itself.",
            "sources": {
                **host.sources, SOURCE: f"measured here by nearfar, seed {session.seed}",
                "assumed": "what x86 servers have had since 2017",
            },
            "figures": figures,
        }
    )  # fmt: skip


def _curve(session: Session, plan: LatencyPlan, effort: Effort) -> dict[int, Estimate]:
    try:
        samples, _ = session.repeat(
            f"latency on {plan.tier}", "ns", plan, effort, judge_spread=False
        )
    except NativeError as error:
        raise MachineError(
            f"latencies of this host cannot be measured: {error.args[1]}",
            "allow transparent huge pages (madvise), or name a host file with --host",
        ) from None
    return {region: lower_quartile(samples.raw[region]) for region in sorted(samples.series)}


def _levels(host: Host, huge: dict[int, Estimate]) -> dict[str, Figure]:
    """Well inside of each level; of the last one just beyond the second, where little is missed."""
    l1, l2 = host.scalar("l1d_bytes"), host.scalar("l2_bytes")
    places = {
        "l1_load_ns": l1 / 2, "l2_load_ns": l2 / 4, "near_read_latency_ns": max(huge),
    }  # fmt: skip
    return {
        key: _figure(huge[min(huge, key=lambda region: abs(region - place))])
        for key, place in places.items()
    } | {"l3_load_ns": _least(huge[min(huge, key=lambda region: abs(region - 2 * l2))])}


def _least(estimate: Estimate) -> Figure:
    """Of a cache that is shared, a load that neighbours have not made one from memory."""
    return _measured("ns", estimate.low, estimate.low, max(estimate.low, estimate.value))


def _last_cache(host: Host, huge: dict[int, Estimate], levels: dict[str, Figure]) -> Figure:
    """Bytes that the last cache held of a region that it held a part of: region x share, the most.

    A cycle in a fixed order finds less than its share in a cache that drives the oldest line out,
    and never more.
    """
    l3, memory = (levels[key].value or 0.0 for key in ("l3_load_ns", "near_read_latency_ns"))
    told = host.scalar("l3_bytes")
    sizes = []
    for region, estimate in huge.items():
        share = (memory - estimate.value) / (memory - l3)
        if region > 1.4 * host.scalar("l2_bytes") and _LEAST_SHARE < share < _MOST_SHARE:
            sizes.append(min(share * region, told))
    if not sizes:
        return host.figure("l3_bytes")
    most = max(sizes)
    return _measured("B", most, median(sizes).value, max(most, min(_MORE_CACHE * most, told)))


def _walks(curves: Curves) -> Figure:
    """Small pages less huge ones beyond the reach of the TLB, made to rise with the region."""
    reach = TLB["stlb_entries"] * _PAGE
    regions = [r for r in curves.small if r in curves.huge and r >= 2 * reach]
    raw = [max(curves.small[r].value - curves.huge[r].value, 0.0) for r in regions]
    wide = [
        (curves.small[r].high - curves.small[r].low + curves.huge[r].high - curves.huge[r].low) / 2
        for r in regions
    ]
    values = _rising(raw)
    return Figure(
        unit="ns", x=["region_bytes"],
        points=[[float(r), v] for r, v in zip(regions, values, strict=True)],
        ranges=[(max(v - w, 0.0), v + w) for v, w in zip(values, wide, strict=True)],
        source=SOURCE, confidence="A", origin=Origin.MEASURED,
        note="a load on 4 KiB pages less one on huge pages, random over the region",
    )  # fmt: skip


def _rising(values: list[float]) -> list[float]:
    """The nearest sequence that never falls (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, m), (b, n) = blocks[-2:]
            blocks[-2:] = [((a * m + b * n) / (m + n), m + n)]
    return [value for value, count in blocks for _ in range(count)]


def _flushes(cpu: int) -> dict[str, Figure]:
    """One store, flush and fence on lines that the caches hold, on tmpfs; a line more under it."""
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
    unit: str, value: float, low: float, high: float, origin: Origin = Origin.MEASURED,
    note: str | None = None,
) -> Figure:  # fmt: skip
    return Figure(
        unit=unit, value=value, low=low, high=high, source=SOURCE, confidence="A", origin=origin,
        note=note,
    )  # fmt: skip
