"""Load latency by region size, and the effective cache size derived from it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nearfar._native import LatencyProbe, NativeError, parse_tier
from nearfar.errors import from_native
from nearfar.measure import knees
from nearfar.measure.ceiling import check_latency
from nearfar.measure.knees import FoundKnee
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.tiers import origin_of
from nearfar.records.figures import Provenance, claimed
from nearfar.records.results import Knee, LatencyCurve, LatencyPoint, LatencyResult
from nearfar.records.run import NO_TIME, Skipped
from nearfar.stats import median
from nearfar.units import MIB, format_size

SMALLEST_REGION = 4096
#: Maximum number of untimed loads before a region is timed. On a region larger than all caches,
#: more of them do not change the state of the caches.
WARM_STEPS = 1 << 18
SAMPLE_NS = 2_000_000
#: Size of the last cache if the system reports none and the probe finds none.
ASSUMED_CACHE = 16 * MIB
#: Largest region by default.
MOST_BY_DEFAULT = 256 * MIB
#: A knee with a smaller rise is attributed to TLB reach, not to a cache.
MIN_CACHE_RATIO = 2.0
#: A region is at the edge of a cache if the latency rises by more than this factor from the region
#: before it to the region after it.
EDGE_RISE = 1.25


def octaves(least: int, most: int, steps_per_octave: int, block_bytes: int = 64) -> list[int]:
    """Region sizes from ``least`` to ``most`` bytes, ascending, in equal logarithmic steps.

    Each is a multiple of the block size.
    """
    regions, step = [], 0
    while (region := least * 2 ** (step / steps_per_octave)) <= most * 1.001:
        regions.append(int(region) // block_bytes * block_bytes)
        step += 1
    return sorted({max(r, block_bytes) for r in regions})


@dataclass(frozen=True)
class LatencyPlan:
    """Pointer chases over regions of one tier. Grid: region sizes in bytes; values: ns a load."""

    tier: str
    cpu: int
    max_region_bytes: int
    block_bytes: int = 64
    steps_per_octave: int = 2
    samples_per_epoch: int = 2

    @property
    def grid(self) -> Sequence[int]:
        """Region sizes in bytes, ascending, in equal logarithmic steps."""
        return octaves(
            SMALLEST_REGION, self.max_region_bytes, self.steps_per_octave, self.block_bytes
        )

    def epoch(self, seed: int) -> Samples[int]:
        """Map memory once, and measure the regions in random order."""
        probe = LatencyProbe(self.tier, self.max_region_bytes, self.cpu)
        samples: Samples[int] = Samples()
        regions = list(self.grid)
        random.Random(seed).shuffle(regions)
        for region in regions:
            probe.prepare(region, self.block_bytes, seed, WARM_STEPS)
            for _ in range(self.samples_per_epoch):
                sample = probe.sample(SAMPLE_NS)
                latency_ns = check_latency(sample["latency_ns"], 1, f"a chase on {self.tier}")
                samples.add(region, latency_ns, [sample])
        return samples

    def smaller(self) -> LatencyPlan | None:
        """First, one region per octave. Then halve the largest region while it exceeds 64 MiB."""
        if self.steps_per_octave > 1:
            return replace(self, steps_per_octave=1)
        if self.max_region_bytes > 64 * MIB:
            return replace(self, max_region_bytes=self.max_region_bytes // 2)
        return None


def measure(
    session: Session, plan: LatencyPlan, effort: Effort, *, judge_spread: bool = True
) -> tuple[LatencyCurve, list[int]]:
    """Measure one curve. Returns it and the regions dropped for lack of time."""
    name = f"latency {plan.tier}"
    samples, dropped = session.repeat(
        name, "ns", plan, effort, judge_spread=judge_spread, label=format_size, edges=cache_edges
    )
    points = [
        LatencyPoint(
            region_bytes=region,
            **session.figures(plan.tier, latency_ns=median(samples.of(region))),
        )
        for region in sorted(samples.series)
    ]
    curve = LatencyCurve(
        tier=plan.tier,
        pages=parse_tier(plan.tier)["pages"],
        block_bytes=plan.block_bytes,
        cpu=plan.cpu,
        points=points,
    )
    return curve, dropped


def cache_edges(latency_by_region: Mapping[int, float]) -> set[int]:
    """Regions at the edge of a cache: latency rises from the region before to the region after.

    At an edge, the physical pages of a buffer decide how many loads miss. The latency therefore
    differs between repeats on an idle machine, too.
    """
    regions = sorted(latency_by_region)
    edges = set()
    for i, region in enumerate(regions):
        below, above = regions[max(i - 1, 0)], regions[min(i + 1, len(regions) - 1)]
        if latency_by_region[above] > EDGE_RISE * latency_by_region[below]:
            edges.add(region)
    return edges


def knees_of(curve: LatencyCurve) -> list[FoundKnee]:
    """Knees of a measured curve; empty if it has fewer points than a fit requires."""
    if len(curve.points) < knees.MIN_REGIONS:
        return []
    return knees.find([p.region_bytes for p in curve.points], [p.latency_ns for p in curve.points])


def effective_last_cache(found: Sequence[FoundKnee]) -> int | None:
    """Size in bytes of the last cache as this CPU can use it: the largest knee that is a cache.

    It is smaller than the reported size if other virtual machines or processes use the cache, too.
    A knee is either a cache or TLB reach. Memory takes several times as long as the last cache, but
    page walks add only about half of a load's time; so a knee is a cache if latency at least
    doubles. None if no knee rises that much.
    """
    caches = [knee.region_bytes for knee in found if knee.ratio >= MIN_CACHE_RATIO]
    return max(caches, default=None)


def _records(curve: LatencyCurve, found: Sequence[FoundKnee], session: Session) -> list[Knee]:
    origin, note = origin_of(curve.tier)
    provenance = Provenance(
        origin=origin,
        statistic="fit",
        samples=len(curve.points),
        seed=session.seed,
        machine=session.machine_id,
        note=note,
    )
    return [knee.record(provenance) for knee in found]


def quick_last_cache(session: Session, cpu: int, reported_bytes: int | None) -> int:
    """The effective last cache in bytes, from a coarse curve that takes about two seconds."""
    largest = _last_caches(reported_bytes, 4)
    plan = LatencyPlan("dram", cpu, largest, steps_per_octave=1, samples_per_epoch=5)
    curve, _ = measure(session, plan, Effort(budget_s=2, epochs=1), judge_spread=False)
    return effective_last_cache(knees_of(curve)) or reported_bytes or ASSUMED_CACHE


def _last_caches(reported_bytes: int | None, count: int) -> int:
    """The size of so many last caches, at most 256 MiB."""
    return min(count * (reported_bytes or ASSUMED_CACHE), MOST_BY_DEFAULT)


def quick_region(reported_bytes: int | None) -> int:
    """Size of the largest region of a short measurement: twice the last cache, from 32 to 256 MiB,
    because linking and walking a larger one takes the time of the other sections."""
    return max(_last_caches(reported_bytes, 2), 32 * MIB)


def default_region(reported_bytes: int | None) -> int:
    """Size of the largest region: eight times the last cache, at most 256 MiB."""
    return _last_caches(reported_bytes, 8)


def page_variants(tier: str) -> list[str]:
    """The tier on huge pages and on 4 KiB pages, if its page size can be chosen and is not set.

    Otherwise only the tier itself.
    """
    spec = parse_tier(tier)
    if spec["maps"] == "memory" and spec["pages"] == "system":
        return [f"{tier},pages=thp", f"{tier},pages=4k"]
    return [tier]


def measure_tiers(
    session: Session,
    tiers: Sequence[str],
    cpu: int,
    region_bytes: int,
    reported_bytes: int | None,
    effort: Effort,
    steps_per_octave: int = 2,
) -> tuple[LatencyResult, list[Skipped]]:
    """One curve for each tier and page size; the curves share the effort's budget equally.

    A tier that cannot be mapped is skipped if another can be; otherwise its error is raised.
    """
    wanted = [variant for tier in tiers for variant in page_variants(tier)]
    share = replace(effort, budget_s=effort.budget_s / len(wanted))
    curves: list[LatencyCurve] = []
    skipped: list[Skipped] = []
    failure: NativeError | None = None
    for tier in wanted:
        plan = LatencyPlan(tier, cpu, region_bytes, steps_per_octave=steps_per_octave)
        try:
            curve, dropped = measure(session, plan, share)
        except NativeError as error:
            failure = error
            skipped.append(Skipped(section="latency", what=tier, why=from_native(error).what))
            continue
        curves.append(curve)
        if dropped:
            what = f"{len(dropped)} region sizes on {tier}"
            skipped.append(Skipped(section="latency", what=what, why=NO_TIME))
    if not curves and failure:
        raise failure
    return _with_last_cache(session, curves, reported_bytes), skipped


def _with_last_cache(
    session: Session, curves: list[LatencyCurve], reported_bytes: int | None
) -> LatencyResult:
    """The curves, and the effective last cache.

    Its size is that of a knee. Without a knee, it is the size that the system reports; without a
    report, an assumed size.
    """
    found = knees_of(curves[0])
    knee = effective_last_cache(found)
    records = _records(curves[0], found, session)
    last = next((record for record in records if record.region_bytes == knee), None)
    assumed = "assumed; no knee was found, and the system reports none"
    source = "the system's report" if reported_bytes else assumed
    key = "effective_last_cache_bytes"
    return LatencyResult(
        intervals={key: (last.low, last.high)} if last else {},
        provenance={key: last.provenance["region_bytes"] if last else claimed(source)},
        curves=curves,
        effective_last_cache_bytes=knee or reported_bytes or ASSUMED_CACHE,
        effective_last_cache_source="knee" if knee else "reported" if reported_bytes else "assumed",
        reported_last_cache_bytes=reported_bytes,
        knees=records,
    )
