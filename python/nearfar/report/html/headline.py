"""The most important figures of each result, as chosen for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.records.depth import LoadedPoint, LoadedResult
from nearfar.records.results import (
    BandwidthPoint,
    BandwidthResult,
    LatencyCurve,
    LatencyPoint,
    LatencyResult,
    MappedRatio,
    MappedResult,
)
from nearfar.report.wording import HUGE_PAGES, plain_tier

#: Nearly all loads miss the last cache if the region is at least this many times larger.
BEYOND_CACHE = 4


def main_curve(result: LatencyResult) -> LatencyCurve | None:
    """Return the curve of the first tier with huge pages; without one, its first curve."""
    curves = [curve for curve in result.curves if curve.points]
    if not curves:
        return None
    first = plain_tier(curves[0].tier)
    own = [curve for curve in curves if plain_tier(curve.tier) == first]
    return next((curve for curve in own if curve.pages in HUGE_PAGES), own[0])


def small_page_curve(result: LatencyResult, main: LatencyCurve) -> LatencyCurve | None:
    """Return the curve that differs from the main one only by 4 KiB pages, if there is one."""
    return next(
        (
            c
            for c in result.curves
            if c.points
            and c.pages == "4k"
            and c is not main
            and plain_tier(c.tier) == plain_tier(main.tier)
            and c.block_bytes == main.block_bytes
        ),
        None,
    )


def largest(curve: LatencyCurve) -> LatencyPoint:
    """Return the point of the largest region."""
    return max(curve.points, key=lambda point: point.region_bytes)


def at_region(curve: LatencyCurve, region_bytes: int) -> LatencyPoint | None:
    """Return the point of one region size."""
    return next((p for p in curve.points if p.region_bytes == region_bytes), None)


def largest_in_both(
    one: LatencyCurve, other: LatencyCurve
) -> tuple[LatencyPoint, LatencyPoint] | None:
    """Return the points of the largest region that two curves have; None if they have none."""
    points = {point.region_bytes: point for point in other.points}
    common = [point for point in one.points if point.region_bytes in points]
    if not common:
        return None
    most = max(common, key=lambda point: point.region_bytes)
    return most, points[most.region_bytes]


def beyond_cache(result: LatencyResult, point: LatencyPoint) -> bool:
    """Whether nearly all loads of this point miss the effective last cache."""
    return point.region_bytes >= BEYOND_CACHE * result.effective_last_cache_bytes


def one_and_all(
    points: Sequence[BandwidthPoint], kernel: str
) -> tuple[BandwidthPoint | None, BandwidthPoint | None]:
    """Return two points of a kernel on the first tier: with one thread, and with the most threads.

    The second has at most one thread per CPU. It is None if that is one thread.
    """
    own = [p for p in points if p.kernel == kernel and p.tier == points[0].tier]
    fair = sorted((p for p in own if not p.oversubscribed), key=lambda p: p.threads)
    one = next((p for p in own if p.threads == 1), None)
    most = fair[-1] if fair and fair[-1].threads > 1 else None
    return one, most


def main_kernel(result: BandwidthResult) -> str:
    """Return the kernel ``read``; if it was not measured, the first kernel."""
    kernels = [point.kernel for point in result.points]
    return "read" if "read" in kernels else kernels[0]


def main_ratio(result: MappedResult) -> MappedRatio | None:
    """Return the ratio of warm random reads to buffered calls, or the most similar ratio."""
    wanted = ("warm", "read", "random", "buffered")

    def distance(ratio: MappedRatio) -> int:
        have = (ratio.warmth, ratio.direction, ratio.pattern, ratio.against)
        return sum(
            weight for weight, w, h in zip((8, 4, 2, 1), wanted, have, strict=True) if w != h
        )

    return min(result.ratios, key=distance, default=None)


def idle(result: LoadedResult) -> LoadedPoint | None:
    """Return the point without traffic."""
    return next((p for p in result.points if p.offered_bytes_per_s == 0), None)


def max_loaded(points: Sequence[LoadedPoint]) -> LoadedPoint:
    """Return the point with the highest achieved bandwidth."""
    return max(points, key=lambda point: point.bandwidth_bytes_per_s)
