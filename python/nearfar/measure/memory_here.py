"""Measure a memory of this machine in two seconds, as a device profile of its cache misses.

Latency is that of a pointer chase over as much memory as a program uses, on huge pages; its
increase on small pages is the page walk; the time of touching all of it once gives the cost of new
pages. Parallelism is that of eight chains, bandwidth that of one thread. ``nearfar probe`` measures
the same at length, with intervals over repeats; here the range is that of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from nearfar._native import ArrayBench, LatencyProbe, NativeError, parse_tier
from nearfar.errors import from_native
from nearfar.measure.latency import WARM_STEPS
from nearfar.records.profile import Figure, Profile
from nearfar.records.shape import Origin
from nearfar.units import MIB

if TYPE_CHECKING:
    from nearfar._native import LatencySample

_SAMPLES, _SAMPLE_NS = 9, 4_000_000
_CHAINS = (4, 8, 12, 16)
_ARRAY_BYTES = 64 * MIB
_SOURCE = "here"
#: Region of the first-touch measurement, which is repeated.
_TOUCHED_BYTES = 256 * MIB
#: Regions of the chases: beyond the second level of every cache, bounded to be quick.
LEAST_REGION, MOST_REGION = 32 * MIB, 1024 * MIB


def memory_here(tier: str, region_bytes: int, cpu: int, name: str | None = None) -> Profile:
    """Measure a tier. Raises BadInputError and MachineError as all measurements of tiers do."""
    region = min(max(region_bytes, LEAST_REGION), MOST_REGION)
    try:
        return _measured(tier, region, cpu, name or tier)
    except NativeError as error:
        raise from_native(error) from None


def _measured(tier: str, region: int, cpu: int, name: str) -> Profile:
    pages = parse_tier(tier)["pages"]
    large = pages in ("thp", "2m", "1g")
    plain = tier.replace(f",pages={pages}", "")
    as_is, first = _chase(tier, region, cpu)
    parallelism, second = _parallelism(tier, region, cpu)
    try:
        huge = as_is if large else _chase(f"{plain},pages=thp", region, cpu)[0]
    except NativeError:  # a medium without huge pages: all of the latency is attributed to it
        huge = as_is
    walk = max(median(as_is) - median(huge), 0.0)
    page = 2 * MIB if large else 4096
    touches = [touched_ns * page / region for touched_ns in (first, second)]
    touches += _first_touches(tier, region, cpu, page)
    figures = {
        "read_latency_ns": _figure(huge, "ns", f"huge pages, over {region} B"),
        "page_walk_ns": _figure([walk], "ns", "a chase on small pages, less one on huge pages"),
        "page_bytes": _figure([float(page)], "B", "of the tier as it was named"),
        "first_touch_ns": _figure(
            touches,
            "ns",
            f"of a page, over {region} B: the minimum, as other work only adds",
            statistic=min,
        ),
        "read_parallelism": _figure([parallelism], "count", "chains at once"),
    }
    for key, kernel in (("read", "read"), ("ntwrite", "ntwrite")):
        rate = _rate(tier, kernel, cpu)
        figures[f"{key}_bandwidth_by_threads_bytes_per_s"] = _curve(rate)
    return Profile(
        name=name,
        title=f"{tier} of this machine, measured for this run",
        description="What misses cost: latency, page walk, parallelism and bandwidth of a thread.",
        sources={_SOURCE: "nearfar, a chase and array kernels of two seconds"},
        figures=figures,
    )


def first_touch_here(tier: str, region_bytes: int, cpu: int) -> float:
    """First-touch time of a small page, in ns: the minimum of several, as disturbances only add."""
    region = min(max(region_bytes, LEAST_REGION), MOST_REGION)
    try:
        return min(_first_touches(tier, region, cpu, 4096))
    except NativeError as error:
        raise from_native(error) from None


def _first_touches(tier: str, region: int, cpu: int, page: int) -> list[float]:
    """First-touch times of a page, in ns."""
    region = min(region, _TOUCHED_BYTES)
    return [LatencyProbe(tier, region, cpu).touch_ns() * page / region for _ in range(4)]


def last_cache_here(reported_bytes: int, least_bytes: int, cpu: int) -> int:
    """The largest power of two up to the reported size at which a chase still hits the caches; 0 if
    there is none from ``least_bytes`` on.

    Virtual machines may report last caches that are shared with neighbors. Chases are on huge
    pages, and count as hits if they take less than half of a load from memory.
    """
    try:
        probe = LatencyProbe("dram,pages=thp", 4 * reported_bytes, cpu)
        probe.prepare(4 * reported_bytes, 64, 1, WARM_STEPS)
        memory = _least(probe)
        region = reported_bytes
        while region >= least_bytes:
            probe.prepare(region, 64, 1, 4 * region // 64)
            if _least(probe) < memory / 2:
                return region
            region //= 2
    except NativeError as error:
        raise from_native(error) from None
    return 0


def _least(probe: LatencyProbe) -> float:
    """The minimum of several latencies: other programs only add to it."""
    return min(_on_processor(probe.sample(_SAMPLE_NS)) for _ in range(5))


def _on_processor(sample: LatencySample) -> float:
    """A latency without the time in which the chase waited for a CPU."""
    wall = sample["wall_ns"]
    share = min(sample["cpu_ns"] / wall, 1.0) if wall else 1.0
    return sample["latency_ns"] * share


def _chase(tier: str, region: int, cpu: int) -> tuple[list[float], int]:
    """Latencies, and the duration of the first touch of all pages, in ns."""
    probe = LatencyProbe(tier, region, cpu)
    probe.prepare(region, 64, 1, WARM_STEPS)
    samples = [_on_processor(probe.sample(_SAMPLE_NS)) for _ in range(_SAMPLES)]
    return samples, probe.touch_ns()


def _parallelism(tier: str, region: int, cpu: int) -> tuple[float, int]:
    """One chain's latency over that of the best number of chains; and the first touch, in ns."""
    probe = LatencyProbe(tier, region, cpu)
    probe.prepare(region, 64, 1, WARM_STEPS)
    alone = median(_on_processor(probe.sample_chains(1, _SAMPLE_NS)) for _ in range(3))
    together = min(
        median(_on_processor(probe.sample_chains(chains, _SAMPLE_NS)) for _ in range(3))
        for chains in _CHAINS
    )
    return max(alone / together, 1.0), probe.touch_ns()


def _rate(tier: str, kernel: str, cpu: int) -> float:
    bench = ArrayBench(tier, tier, tier, _ARRAY_BYTES // 8, [cpu])
    repeats = [bench.repeat(kernel, [cpu]) for _ in range(4)]
    return median(r["counted_bytes"] / r["seconds"] for r in repeats[1:])


def _figure(
    values: Sequence[float],
    unit: str,
    note: str,
    statistic: Callable[[Sequence[float]], float] = median,
) -> Figure:
    low, high = (min(values), max(values)) if len(values) > 1 else (None, None)
    return Figure(
        unit=unit,
        value=statistic(values),
        low=low,
        high=high,
        source=_SOURCE,
        confidence="A",
        origin=Origin.MEASURED,
        note=note,
    )


def _curve(rate: float) -> Figure:
    return Figure(
        unit="B/s",
        x=["threads"],
        points=[[1.0, rate]],
        source=_SOURCE,
        confidence="A",
        origin=Origin.MEASURED,
    )
