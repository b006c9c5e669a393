"""Made-up results of `probe`, each with the features a page has to show."""

from __future__ import annotations

from typing import Any

from factories.shaped import around, origin, shaped
from nearfar.records.depth import (
    AccessPoint,
    AccessResult,
    BlockPoint,
    BlocksResult,
    ChainPoint,
    LoadedPoint,
    LoadedResult,
    OverwriteResult,
    ParallelismResult,
    PersistCost,
    PersistenceResult,
    PersistPoint,
    TailPoint,
    TailsResult,
)
from nearfar.records.figures import Origin
from nearfar.records.results import (
    BandwidthPoint,
    BandwidthResult,
    Knee,
    LatencyCurve,
    LatencyPoint,
    LatencyResult,
)
from nearfar.units import KIB, MIB


def _latency_ns(region_bytes: int, walks: bool) -> float:
    """Four plateaus with soft steps; small pages add walks from 8 MiB on."""
    steps = ((48 * KIB, 2.6), (2 * MIB, 9.5), (32 * MIB, 78.0))
    latency = 1.4 + sum(gain / (1 + (edge / region_bytes) ** 3) for edge, gain in steps)
    return latency + (31.0 / (1 + (24 * MIB / region_bytes) ** 2) if walks else 0.0)


def latency(tiers: tuple[str, ...] = ("dram",), factor: float = 1.0) -> LatencyResult:
    regions = [4 * KIB * 2 ** (i // 2) * (3 if i % 2 else 2) // 2 for i in range(36)]
    curves = [
        LatencyCurve(
            tier=tier,
            pages=pages,
            block_bytes=64,
            cpu=0,
            points=[
                LatencyPoint(
                    region_bytes=region,
                    **shaped(
                        {
                            "latency_ns": around(
                                factor * _latency_ns(region, pages == "4k") * (1 + 0.12 * n), 0.03
                            )
                        },
                        origin(tier),
                    ),
                )
                for region in regions
            ],
        )
        for n, tier in enumerate(tiers)
        for pages in ("thp", "4k")
    ]
    return LatencyResult(
        curves=curves,
        effective_last_cache_bytes=32 * MIB,
        effective_last_cache_source="knee",
        reported_last_cache_bytes=300 * MIB,
        knees=[
            Knee(region_bytes=48 * KIB, low=32 * KIB, high=64 * KIB),
            Knee(region_bytes=2 * MIB, low=1536 * KIB, high=3 * MIB),
            Knee(region_bytes=32 * MIB, low=24 * MIB, high=40 * MIB),
        ],
    )


def bandwidth(
    tiers: tuple[str, ...] = ("dram",), threads: tuple[int, ...] = (1, 2), cpus: int = 2
) -> BandwidthResult:
    rates = {"read": 11.8e9, "write": 8.3e9, "ntwrite": 9.6e9, "copy": 9.9e9}
    points = [
        BandwidthPoint(
            tier=tier,
            kernel=kernel,
            threads=n,
            oversubscribed=n > cpus,
            **shaped(
                {"bandwidth_bytes_per_s": around(rate * min(n, cpus) ** 0.8 * (1 - 0.1 * i), 0.04)},
                origin(tier),
                None,
            ),
        )
        for i, tier in enumerate(tiers)
        for kernel, rate in rates.items()
        for n in threads
    ]
    return BandwidthResult(size_bytes=256 * MIB, in_cache=False, points=points)


def parallelism(tier: str = "dram", limit: int = 10) -> ParallelismResult:
    """Chains are free up to a limit, and cost a little beyond it."""
    times = {n: 92.0 / min(n, limit) + 0.2 * max(n - limit, 0) for n in (1, 2, 4, 6, 8, 10, 12, 16)}
    return ParallelismResult(
        tier=tier,
        region_bytes=256 * MIB,
        points=[
            ChainPoint(chains=n, **shaped({"latency_ns": around(t)}, origin(tier)))
            for n, t in times.items()
        ],
        **shaped({"parallelism": around(float(limit))}, origin(tier)),
    )


def blocks(tier: str = "dram") -> BlocksResult:
    points = [
        BlockPoint(
            block_bytes=size,
            **shaped({"latency_ns": around(92.0 * (size / 64) ** -0.5, 0.04)}, origin(tier)),
        )
        for size in (64, 128, 256, 512, KIB, 2 * KIB, 4 * KIB)
    ]
    return BlocksResult(tier=tier, region_bytes=256 * MIB, points=points)


def _access(
    tier: str,
    order: Any,
    block: int,
    stride: int,
    mix: tuple[int, int, bool],
    threads: int,
    rate: float,
) -> AccessPoint:
    reads, writes, nontemporal = mix
    return AccessPoint(
        order=order,
        block_bytes=block,
        stride_bytes=stride,
        reads=reads,
        writes=writes,
        nontemporal=nontemporal,
        threads=threads,
        **shaped({"bandwidth_bytes_per_s": around(rate, 0.05)}, origin(tier)),
    )


def access(tier: str = "dram", interleave: int | None = None) -> AccessResult:
    """Random rates grow with the block; one stride dips where devices take turns."""
    mixes = [(1, 0, False), (3, 1, False), (1, 1, False), (0, 1, False), (0, 1, True)]
    points = [
        _access(
            tier,
            order,
            block,
            0,
            mix,
            n,
            11e9
            * n**0.8
            * (0.15 * (block / 64) ** 0.4 if order == "random" else 1.0)
            / (1 + 0.2 * mix[1]),
        )
        for n in (1, 2)
        for order in ("sequential", "random")
        for block in (64, 256, 4 * KIB)
        for mix in mixes
    ]
    points += [_access(tier, "strided", 64, KIB, mix, 2, 3e9) for mix in mixes[1:]]
    strides = [
        _access(tier, "strided", 64, stride, mixes[0], 2, 1e9 if stride == interleave else 3e9)
        for stride in (256 << i for i in range(9))
    ]
    return AccessResult(
        tier=tier, size_bytes=256 * MIB, points=points, strides=strides, interleave_bytes=interleave
    )


def persistence(
    tier: str = "shm:", how: tuple[str, ...] = ("clwb", "ntstore")
) -> PersistenceResult:
    """A fence costs 120 ns or more, each line under it 15 ns or less; emulated on every tier."""
    origin = Origin.EMULATED
    places = [(64, n) for n in (1, 2, 4, 8, 16, 32)] + [(s, 1) for s in (256, KIB, 4 * KIB)]
    points = [
        PersistPoint(
            how=name,
            block_bytes=size,
            blocks_per_fence=n,
            **shaped(
                {"fence_ns": around(120.0 + 40 * i + 15.0 / (i + 1) * n * size / 64, 0.06)}, origin
            ),
        )
        for i, name in enumerate(how)
        for size, n in places
    ]
    costs = [
        PersistCost(
            how=name,
            **shaped(
                {"per_fence_ns": around(120.0 + 40 * i), "per_line_ns": around(15.0 / (i + 1))},
                origin,
            ),
        )
        for i, name in enumerate(how)
    ]
    overwrite = OverwriteResult(
        how="ntstore",
        block_bytes=256,
        stalls=5,
        **shaped(
            {
                "latency_ns": around(70.0),
                "stall_ns": around(52e3, 0.2),
                "writes_between": around(16e3, 0.3),
            },
            origin,
        ),
    )
    return PersistenceResult(tier=tier, points=points, costs=costs, overwrite=overwrite)


def loaded(tier: str = "dram") -> LoadedResult:
    """Latency grows as a queue's: without end as the load nears 20 GB/s."""
    shares = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
    points = []
    for reads, writes, most in ((1, 0, 20e9), (1, 1, 16e9)):
        offers = [share * most for share in (shares if writes == 0 else shares[1:])]
        for offered in [*offers, None]:
            rate = 0.3e9 + (0.95 * most if offered is None else offered)
            latency_ns = 92.0 * (1 + 0.1 * rate / most / (1.04 - rate / (most + 0.3e9)))
            points.append(
                LoadedPoint(
                    reads=reads,
                    writes=writes,
                    offered_bytes_per_s=offered,
                    **shaped(
                        {
                            "bandwidth_bytes_per_s": around(rate, 0.01),
                            "latency_ns": around(latency_ns, 0.05),
                        },
                        origin(tier),
                    ),
                )
            )
    return LoadedResult(tier=tier, chaser_cpu=0, traffic_cpus=[1], points=points)


def tails(tier: str = "dram") -> TailsResult:
    shares = {0.5: 90.0, 0.9: 130.0, 0.99: 240.0, 0.999: 420.0, 0.9999: 3100.0}
    points = [
        TailPoint(share=share, **shaped({"latency_ns": around(t, 0.08)}, origin(tier)))
        for share, t in shares.items()
    ]
    return TailsResult(
        tier=tier,
        region_bytes=256 * MIB,
        points=points,
        **shaped({"timer_ns": around(20.0)}, seed=None),
    )
