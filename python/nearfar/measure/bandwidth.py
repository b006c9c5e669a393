"""Bandwidth of one tier by number of threads: read, write, ntwrite, copy and further kernels."""

from __future__ import annotations

from nearfar._native import array_kernels, parse_tier
from nearfar.measure.arrays import ArrayPlan, in_cache, point_name, skipped_points
from nearfar.measure.memory import on_pages
from nearfar.measure.session import Effort, Session
from nearfar.records.results import BandwidthPoint, BandwidthResult
from nearfar.records.run import Skipped
from nearfar.stats import median

#: The native table defines the kernels: one that is added there is measured here.
KERNELS = tuple(kernel["name"] for kernel in array_kernels() if not kernel["skipped_by_probe"])


def measure(
    session: Session, plan: ArrayPlan, effort: Effort, effective_last_cache: int
) -> tuple[BandwidthResult, list[Skipped]]:
    """Measure the one tier of the plan's arrays. Returns the result and the skipped points."""
    tier = plan.tiers[0]
    samples, dropped = session.repeat(
        f"bandwidth {tier}", "bytes_per_s", plan, effort, label=point_name
    )
    pages = parse_tier(on_pages(tier))["pages"]
    points = [
        BandwidthPoint(
            tier=tier,
            kernel=kernel,
            threads=threads,
            pages=pages,
            oversubscribed=threads > len(plan.cpus),
            **session.figures(tier, bandwidth_bytes_per_s=median(samples.of((kernel, threads)))),
        )
        for kernel, threads in samples.series
    ]
    result = BandwidthResult(
        size_bytes=plan.array_bytes,
        in_cache=in_cache(plan.array_bytes, effective_last_cache),
        points=sorted(points, key=lambda p: (p.threads, KERNELS.index(p.kernel))),
    )
    return result, skipped_points("bandwidth", tier, dropped)
