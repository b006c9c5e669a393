"""Made-up records for tests, from plain formulas: no figure here was measured anywhere.

Every record says so itself: its machine is called "made-up test machine".
"""

from __future__ import annotations

from typing import Any

from nearfar.records.allocators import AllocatorFacts, MallocResult, MallocRow
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
from nearfar.records.forecasts import (
    CompeteForecast,
    CompeteForecasts,
    ForecastError,
    PipelineForecast,
    PublishedError,
)
from nearfar.records.noise import NoiseRecord
from nearfar.records.results import (
    BandwidthPoint,
    BandwidthResult,
    Knee,
    LatencyCurve,
    LatencyPoint,
    LatencyResult,
    MappedPoint,
    MappedRatio,
    MappedResult,
    MappingFacts,
    StreamKernel,
    StreamResult,
    StreamRun,
)  # fmt: skip
from nearfar.records.run import Finding, Run, Sections, Skipped
from nearfar.records.shape import Origin, quantities
from nearfar.records.together import (
    CompeteDrop,
    CompeteResult,
    CompeteRow,
    CompeteThread,
    PipelineLap,
    PipelineResult,
    PipelineStage,
    Side,
    StencilResult,
    StencilSplit,
)
from nearfar.stats import Estimate
from nearfar.units import GIB, KIB, MIB

MACHINE_ID = "made-up-0001"


def _around(value: float, width: float = 0.015, statistic: str = "median") -> Estimate:
    low, high = value * (1 - width), value * (1 + width)
    return Estimate(value, low, high if statistic != "best" else value, 7, width, statistic, 0)


def _shaped(
    estimates: dict[str, Estimate], origin: Origin = Origin.MEASURED, seed: int | None = 1
) -> dict[str, Any]:
    return quantities(origin, estimates, seed=seed, machine=MACHINE_ID)


def _origin(tier: str) -> Origin:
    return Origin.EMULATED if tier.startswith("shm") else Origin.MEASURED


def _latency_ns(region_bytes: int, walks: bool) -> float:
    """Four plateaus with soft steps; small pages add walks from 8 MiB on."""
    steps = ((48 * KIB, 2.6), (2 * MIB, 9.5), (32 * MIB, 78.0))
    latency = 1.4 + sum(
        gain / (1 + (edge / region_bytes) ** 3) for edge, gain in steps
    )  # fmt: skip
    return latency + (31.0 / (1 + (24 * MIB / region_bytes) ** 2) if walks else 0.0)


def latency(tiers: tuple[str, ...] = ("dram",), factor: float = 1.0) -> LatencyResult:
    regions = [4 * KIB * 2 ** (i // 2) * (3 if i % 2 else 2) // 2 for i in range(36)]
    curves = [
        LatencyCurve(
            tier=tier, pages=pages, block_bytes=64, cpu=0,
            points=[
                LatencyPoint(
                    region_bytes=region,
                    **_shaped(
                        {
                            "latency_ns": _around(
                                factor * _latency_ns(region, pages == "4k") * (1 + 0.12 * n), 0.03
                            )
                        },
                        _origin(tier),
                    ),
                )
                for region in regions
            ],
        )
        for n, tier in enumerate(tiers)
        for pages in ("thp", "4k")
    ]  # fmt: skip
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
            tier=tier, kernel=kernel, threads=n, oversubscribed=n > cpus,
            **_shaped(
                {
                    "bandwidth_bytes_per_s": _around(
                        rate * min(n, cpus) ** 0.8 * (1 - 0.1 * i), 0.04
                    )
                },
                _origin(tier), None,
            ),
        )
        for i, tier in enumerate(tiers)
        for kernel, rate in rates.items()
        for n in threads
    ]  # fmt: skip
    return BandwidthResult(size_bytes=256 * MIB, in_cache=False, points=points)


def _stream_run(threads: int, cpus: int) -> dict[str, Any]:
    rates = {"copy": 9.1e9, "scale": 8.9e9, "add": 10.2e9, "triad": 10.1e9}
    kernels = {
        name: StreamKernel(
            write_allocate=True,
            **_shaped(
                {
                    "best_bandwidth_bytes_per_s": _around(
                        rate * min(threads, cpus) ** 0.75, 0.02, "best"
                    ),
                    "median_bandwidth_bytes_per_s": _around(
                        rate * min(threads, cpus) ** 0.75 * 0.98
                    ),
                },
                seed=None,
            ),
        )
        for name, rate in rates.items()
    }
    return {
        "tier_a": "dram", "tier_b": "dram", "tier_c": "dram", "cpus": list(range(threads)),
        "oversubscribed": threads > cpus, "size_bytes": 128 * MIB, "in_cache": False,
        "worst_error": 1.1e-15, **kernels,
    }  # fmt: skip


def stream(threads: tuple[int, ...] = (1, 2), cpus: int = 2) -> StreamResult:
    runs = [_stream_run(n, cpus) for n in threads]
    return StreamResult(**runs[-1], sweep=[StreamRun(**run) for run in runs])


_METHODS = {"mapped": 1.0, "buffered": 1.35, "direct": 0.42, "uring": 0.9}


def _mapped_point(method: Any, direction: Any, pattern: Any, warmth: Any) -> MappedPoint:
    rate = 3.1e9 * _METHODS[method]
    rate *= 0.35 if direction == "write" else 1.0
    rate *= 0.45 if pattern == "random" else 1.0
    rate *= {"cold": 0.3, "warm": 1.0, "resident": 2.2}[warmth]
    faults = {} if method != "mapped" else {"faults_per_gib": _around(16_500.0, 0.001)}
    return MappedPoint(
        method=method, direction=direction, pattern=pattern, warmth=warmth, block_bytes=4 * KIB,
        queue_depth=32 if method == "uring" else 1,
        **_shaped({"bandwidth_bytes_per_s": _around(rate, 0.05), **faults}),
    )  # fmt: skip


def mapped(path: str = "/made-up/nearfar.bin") -> MappedResult:
    points = [
        _mapped_point(method, direction, pattern, warmth)
        for direction in ("read", "write")
        for pattern in ("sequential", "random")
        for method in _METHODS
        for warmth in ("cold", "warm", "resident")
        if (warmth != "resident" or method == "mapped")
        and (warmth != "cold" or direction == "read")
    ]
    ratios = [
        MappedRatio(
            against=against, direction=direction, pattern=pattern, warmth=warmth,  # type: ignore[arg-type]
            **_shaped({"ratio": _around((0.7 if pattern == "random" else 1.0) / share, 0.06)}),
        )
        for direction in ("read", "write")
        for pattern in ("sequential", "random")
        for warmth in (("cold", "warm") if direction == "read" else ("warm",))
        for against, share in _METHODS.items()
        if against != "mapped"
    ]  # fmt: skip
    return MappedResult(
        path=path, size_bytes=GIB // 2, file_system="ext4",
        mapping=MappingFacts(
            descriptor=5, first_address=0x7F5A_4000_0000, last_address=0x7F5A_5FFF_FFFF,
            page_bytes=4096, huge_bytes=0, dax=False, map_sync=False,
        ),
        points=points, ratios=ratios,
        **_shaped({"fault_time_ns": _around(540.0)}, seed=None),
    )  # fmt: skip


def parallelism(tier: str = "dram", limit: int = 10) -> ParallelismResult:
    """Chains are free up to a limit, and cost a little beyond it."""
    times = {n: 92.0 / min(n, limit) + 0.2 * max(n - limit, 0) for n in (1, 2, 4, 6, 8, 10, 12, 16)}
    return ParallelismResult(
        tier=tier, region_bytes=256 * MIB,
        points=[
            ChainPoint(chains=n, **_shaped({"latency_ns": _around(t)}, _origin(tier)))
            for n, t in times.items()
        ],
        **_shaped({"parallelism": _around(float(limit))}, _origin(tier)),
    )  # fmt: skip


def blocks(tier: str = "dram") -> BlocksResult:
    points = [
        BlockPoint(
            block_bytes=size,
            **_shaped({"latency_ns": _around(92.0 * (size / 64) ** -0.5, 0.04)}, _origin(tier)),
        )
        for size in (64, 128, 256, 512, KIB, 2 * KIB, 4 * KIB)
    ]
    return BlocksResult(tier=tier, region_bytes=256 * MIB, points=points)


def _access(
    tier: str, order: Any, block: int, stride: int, mix: tuple[int, int, bool], threads: int,
    rate: float,
) -> AccessPoint:  # fmt: skip
    reads, writes, nontemporal = mix
    return AccessPoint(
        order=order, block_bytes=block, stride_bytes=stride, reads=reads, writes=writes,
        nontemporal=nontemporal, threads=threads,
        **_shaped({"bandwidth_bytes_per_s": _around(rate, 0.05)}, _origin(tier)),
    )  # fmt: skip


def access(tier: str = "dram", interleave: int | None = None) -> AccessResult:
    """Random rates grow with the block; one stride dips where devices take turns."""
    mixes = [(1, 0, False), (3, 1, False), (1, 1, False), (0, 1, False), (0, 1, True)]
    points = [
        _access(tier, order, block, 0, mix, n,
                11e9 * n**0.8 * (0.15 * (block / 64) ** 0.4 if order == "random" else 1.0)
                / (1 + 0.2 * mix[1]))
        for n in (1, 2)
        for order in ("sequential", "random")
        for block in (64, 256, 4 * KIB)
        for mix in mixes
    ]  # fmt: skip
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
            **_shaped(
                {"fence_ns": _around(120.0 + 40 * i + 15.0 / (i + 1) * n * size / 64, 0.06)}, origin
            ),
        )
        for i, name in enumerate(how)
        for size, n in places
    ]
    costs = [
        PersistCost(
            how=name,
            **_shaped(
                {"per_fence_ns": _around(120.0 + 40 * i), "per_line_ns": _around(15.0 / (i + 1))},
                origin,
            ),
        )
        for i, name in enumerate(how)
    ]
    overwrite = OverwriteResult(
        how="ntstore", block_bytes=256, stalls=5,
        **_shaped(
            {"latency_ns": _around(70.0), "stall_ns": _around(52e3, 0.2),
             "writes_between": _around(16e3, 0.3)},
            origin,
        ),
    )  # fmt: skip
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
                    reads=reads, writes=writes, offered_bytes_per_s=offered,
                    **_shaped(
                        {"bandwidth_bytes_per_s": _around(rate, 0.01),
                         "latency_ns": _around(latency_ns, 0.05)},
                        _origin(tier),
                    ),
                )
            )  # fmt: skip
    return LoadedResult(tier=tier, chaser_cpu=0, traffic_cpus=[1], points=points)


def tails(tier: str = "dram") -> TailsResult:
    shares = {0.5: 90.0, 0.9: 130.0, 0.99: 240.0, 0.999: 420.0, 0.9999: 3100.0}
    points = [
        TailPoint(share=share, **_shaped({"latency_ns": _around(t, 0.08)}, _origin(tier)))
        for share, t in shares.items()
    ]
    return TailsResult(
        tier=tier, region_bytes=256 * MIB, points=points,
        **_shaped({"timer_ns": _around(20.0)}, seed=None),
    )  # fmt: skip


def _compete_row(near: int, far: int, cpus: int = 2) -> CompeteRow:
    rates = {"near": 6.1e9 * near**0.8, "far": 3.2e9 * far**0.7}
    rates["sum"] = sum(rates.values())
    near_side: list[tuple[Side, int]] = [("near", i) for i in range(near)]
    names = [*near_side, *(("far", near + i) for i in range(far))]
    threads = [
        CompeteThread(
            side=side, cpu=cpu, end_s=[0.01 * (i + 1) for i in range(50)],
            rate_bytes_per_s=[
                (6.1e9 if side == "near" else 3.2e9) * (0.4 if i == 20 and cpu else 1.0)
                for i in range(50)
            ],
        )
        for side, cpu in names
    ]  # fmt: skip
    drops = [
        CompeteDrop(
            side=side, cpu=cpu, repeat=0, start_s=0.2, length_s=0.025, depth=0.6, period_s=None,
            off_cpu_s=0.015, steal_s=0.0, involuntary_switches=2, minor_faults=0, major_faults=0,
            cause="pushed aside",
        )
        for side, cpu in names
        if cpu
    ]  # fmt: skip
    figures = {f"{side}_bandwidth_bytes_per_s": _around(rate) for side, rate in rates.items()}
    figures["common_time_s"] = _around(3.5, 0.0, "sum")
    return CompeteRow(
        mode="far-near", near="dram", far="shm:", near_threads=near, far_threads=far,
        oversubscribed=near + far > cpus, size_bytes=128 * MIB, in_cache=False,
        threads=threads, drops=drops, **_shaped(figures, Origin.EMULATED),
    )  # fmt: skip


def compete(threads: int = 2, cpus: int = 2) -> CompeteResult:
    rows = [_compete_row(threads - far, far, cpus) for far in range(1, threads)]
    return CompeteResult(**dict(rows[-1]), rows=rows)


def published() -> list[PublishedError]:
    """As a model tells them: of several rows, and of one."""
    return [
        PublishedError(table="made_up_rows.csv", what="near rate of each row, from the other rows",
                       cases=5, mean_error=0.0123, worst_error=-0.0345),
        PublishedError(table="made_up_row.csv", what="total time, nothing fitted", cases=1,
                       mean_error=0.051, worst_error=0.051),
    ]  # fmt: skip


def _with_predicted(measured: dict[str, float], predicted: dict[str, float]) -> dict[str, Any]:
    """Keyword arguments of a forecast."""
    shaped = _shaped({key: _around(value) for key, value in measured.items()}, Origin.EMULATED)
    found = _shaped({key: _around(value) for key, value in predicted.items()}, Origin.MODELLED)
    for part in ("intervals", "provenance"):
        found[part] = shaped[part] | found[part]
    return shaped | found


def _foretold(row: CompeteRow) -> CompeteForecast:
    """A little off what the row then reached."""
    rates = {"near": 1.04 * row.near_bandwidth_bytes_per_s, "far": row.far_bandwidth_bytes_per_s}
    rates["sum"] = sum(rates.values())
    alone = {"near_alone": 7.1e9, "far_alone": 3.3e9, "together": 9.9e9}
    return CompeteForecast(
        **_with_predicted(
            *({f"{k}_bandwidth_bytes_per_s": v for k, v in part.items()} for part in (alone, rates))
        ),
        near_threads=row.near_threads, far_threads=row.far_threads, calibration_level=1,
        calibration="1: copies of each side alone measured here; no row of both",
        predicted_on="2026-07-01T12:00:00+00:00",
    )  # fmt: skip


def compete_foretold(threads: int = 3) -> CompeteResult:
    """Competition whose rates were predicted from each side alone."""
    rows = []
    for row in compete(threads, threads).rows:
        told = _foretold(row)
        keys = [f"{side}_bandwidth_bytes_per_s" for side in ("near", "far", "sum")]
        errors = [
            ForecastError(key=key, error=getattr(told, key) / getattr(row, key) - 1) for key in keys
        ]
        rows.append(row.model_copy(update={"errors": errors}))
    forecast = CompeteForecasts(
        mode="far-near", near="dram", far="shm:", rows=[_foretold(row) for row in rows],
        published=published(),
    )  # fmt: skip
    return CompeteResult(**dict(rows[-1]), rows=rows, forecast=forecast)


def pipeline_foretold() -> PipelineResult:
    """A pipeline whose times were predicted from its stages alone."""
    result = pipeline()
    predicted = {"generate_time_s": 9.0, "transfer_time_s": 2.2, "analyse_time_s": 6.1,
                 "total_time_s": 9.0}  # fmt: skip
    measured = {
        "generate_alone_time_s": 8.4, "analyse_alone_time_s": 5.9,
        "near_copy_bandwidth_bytes_per_s": 2.1e10, "transfer_bandwidth_bytes_per_s": 1.2e10,
        "far_read_bandwidth_bytes_per_s": 1.6e10,
    }  # fmt: skip
    forecast = PipelineForecast(
        **_with_predicted(measured, predicted), near="dram", far="shm:", near_threads=1,
        far_threads=1, calibration_level=1,
        calibration="1: stages of each side alone measured here; no run of both",
        predicted_on="2026-07-01T12:00:00+00:00", published=published(),
    )  # fmt: skip
    errors = [
        ForecastError(key=key, error=value / getattr(result, key) - 1)
        for key, value in predicted.items()
    ]
    return result.model_copy(update={"forecast": forecast, "errors": errors})


def stencil(far_rows: int = 1024) -> StencilResult:
    near_rows = 4096 - far_rows
    figures = {"total_time_s": _around(2.1e-5 * max(near_rows, 2 * far_rows))}
    for side, rows, each in (("near", near_rows, 2e-5), ("far", far_rows, 4e-5)):
        if rows:
            figures[f"{side}_time_s"] = _around(rows * each)
            figures[f"{side}_bandwidth_bytes_per_s"] = _around(8192 * 16 / each)
    return StencilResult(
        rows=4096, cols=8192, far_rows=far_rows, version="ghost", near="dram", far="shm:",
        near_threads=1, far_threads=1, oversubscribed=False, in_cache=False, sweeps=10,
        matches_serial=True, **_shaped(figures, Origin.EMULATED),
    )  # fmt: skip


def stencil_split() -> StencilSplit:
    """Predicted a little off the stencil that ran."""
    times = {"near_time_s": 0.0600, "far_time_s": 0.0400, "total_time_s": 0.0600}
    copies = {
        "near_bandwidth_bytes_per_s": 5.3e10, "far_bandwidth_bytes_per_s": 2.6e10,
        "near_alone_bandwidth_bytes_per_s": 5.5e10, "near_element_time_s": 2.4e-9,
    }  # fmt: skip
    return StencilSplit(
        **_with_predicted(copies, times), kernel="stencil8", rows=4096, cols=8192, far_rows=1024,
        version="ghost", near="dram", far="shm:", near_threads=1, far_threads=1,
        traffic_factor=1.0, calibration_level=1,
        calibration="1: software cost measured here; competition from 1 measured row",
        predicted_on="2026-07-01T12:00:00+00:00", published=published(),
    )  # fmt: skip


def stencil_beside_alone() -> StencilResult:
    """A run of a predicted split, and of all rows on either side."""
    alone = _shaped(
        {"near_alone_time_s": _around(0.083), "far_alone_time_s": _around(0.165)}, Origin.EMULATED
    )
    result = stencil()
    result.intervals |= alone.pop("intervals")
    result.provenance |= alone.pop("provenance")
    return result.model_copy(update={**alone, "split": stencil_split()})


def pipeline(near_only: bool = False) -> PipelineResult:
    times = {"generate": 9.1, "analyse": 6.4, "total": 15.5 if near_only else 9.6}
    if not near_only:
        times |= {"generate_idle": 0.5, "transfer": 2.1, "transfer_idle": 1.1}
    figures = {f"{stage}_time_s": _around(seconds) for stage, seconds in times.items()}
    near = [PipelineLap(side="near", stage="generate", start_s=0.1 * i, end_s=0.1 * i + 0.09)
            for i in range(6)]  # fmt: skip
    away: list[PipelineStage] = ["analyse"] if near_only else ["transfer_idle", "transfer"]
    far = [
        PipelineLap(side="near" if near_only else "far", stage=stage,
                    start_s=0.1 * i + 0.03 * (n + 3 * near_only), end_s=0.1 * (i + 1))
        for i in range(6)
        for n, stage in enumerate(away)
    ]  # fmt: skip
    return PipelineResult(
        elements=16_000_000, iterations=100, near="dram", far=None if near_only else "shm:",
        near_threads=1, far_threads=0 if near_only else 1, oversubscribed=False, in_cache=False,
        compared_iterations=50, timeline=[*near, *far],
        **_shaped(figures, Origin.MEASURED if near_only else Origin.EMULATED),
    )  # fmt: skip


def _malloc_row(test: Any, allocator: str, threads: int, cpus: int) -> MallocRow:
    speed = {"glibc": 1.0, "mimalloc": 0.6, "jemalloc": 0.9}[allocator]
    cpu_s = {"small": 0.24, "free-loop": 0.31, "warm": 0.11}[test] * speed
    peak = {"small": 272e6, "free-loop": 90e6, "warm": 1.6e6}[test]
    figures = {
        "cpu_time_s": _around(cpu_s), "wall_time_s": _around(cpu_s / min(threads, cpus) * 1.1),
        "peak_memory_bytes": _around(peak), "settled_memory_bytes": _around(peak * 0.8),
        "settled_share": _around(0.8),
    }  # fmt: skip
    if test == "warm":
        figures["pair_time_ns"] = _around(22 * speed)
    if allocator != "glibc":
        figures |= {"ratio_to_glibc": _around(speed), "wall_ratio_to_glibc": _around(speed),
                    "peak_ratio_to_glibc": _around(1.0)}  # fmt: skip
    blocks = {"small": 1_000_000, "free-loop": 10_000, "warm": 5_000_000}[test]
    return MallocRow(
        test=test, allocator=allocator, threads=threads, oversubscribed=threads > cpus,
        count=blocks, pairs=blocks * (10 if test == "free-loop" else 1), **_shaped(figures),
    )  # fmt: skip


def malloc(threads: tuple[int, ...] = (1, 2, 4, 8, 16), cpus: int = 2) -> MallocResult:
    names = ("glibc", "mimalloc", "jemalloc")
    rows = [
        _malloc_row(test, name, count, cpus)
        for test in ("small", "free-loop", "warm")
        for count in threads
        for name in names
    ]
    facts = [AllocatorFacts(allocator=name, library=f"/made-up/lib{name}.so") for name in names]
    return MallocResult(**dict(rows[1]), rows=rows, allocators=facts)


def allocators() -> Run:
    """The malloc tests of the Seoul thesis."""
    return study(sections=Sections(malloc=malloc()))


def together() -> Run:
    """Near and far memory at work together: the verbs after the Oslo thesis."""
    return study(
        sections=Sections(
            compete=compete_foretold(4), stencil=stencil_beside_alone(),
            pipeline=pipeline_foretold(),
        )
    )  # fmt: skip


def machine() -> dict[str, Any]:
    return {
        "id": MACHINE_ID,
        "processor": "Made-up test processor 2.5 GHz",
        "kernel": "6.1.0-made-up",
        "virtual_machine": "kvm",
        "memory_bytes": 16 * GIB,
        "nodes": [
            {"id": 0, "size_bytes": 16 * GIB, "cpus": [0, 1], "cpuless": False,
             "distances": {"0": 10}, "read_latency_ns": 85.0,
             "provenance": {
                 "read_latency_ns": {"origin": "modelled", "statistic": "claim", "samples": 0}
             }},
        ],
        "caches": [
            {"level": 1, "type": "data", "size_bytes": 48 * KIB, "line_bytes": 64, "cpus": [0, 1]},
            {"level": 2, "type": "unified", "size_bytes": 2 * MIB, "line_bytes": 64, "cpus": [0]},
            {"level": 3, "type": "unified", "size_bytes": 300 * MIB, "line_bytes": 64, "cpus": [0]},
        ],
        "cpus": [
            {"id": i, "core": i, "package": 0, "node": 0, "usable": True} for i in range(2)
        ],
        "memory_mode": None,
        "pmem_regions": [],
        "tiers": [
            {"name": "DRAM", "spec": "dram", "alias": "near", "capacity_bytes": 16 * GIB,
             "medium": "DRAM", "persistence": "none", "persistence_reason": "anonymous memory"},
            {"name": "shared memory", "spec": "shm:", "alias": "far", "capacity_bytes": 8 * GIB,
             "medium": "DRAM", "persistence": "emulated", "persistence_reason": "tmpfs is DRAM"},
        ],
    }  # fmt: skip


def findings() -> list[Finding]:
    return [
        Finding(check="clock source", level="ok", found="tsc", why="", mend=""),
        Finding(
            check="virtual machine", level="warning", found="kvm",
            why="neighbours take processor time and caches are reported that are not there",
            mend="measure on bare metal, or read the noise verdict",
        ),
        Finding(check="huge pages", level="note", found="none reserved", why="pages=2m cannot run",
                mend="sysctl vm.nr_hugepages=512"),
        Finding(check="frequency governor", level="unknown", found="not told by the kernel",
                why="", mend=""),
    ]  # fmt: skip


def calm() -> NoiseRecord:
    return NoiseRecord(
        noisy=False, reasons=[], foreign_cpus=0.03, steal=0.001, least_cpu_share=0.998,
        worst_spread=0.06,
    )  # fmt: skip


def study(**changes: Any) -> Run:
    """A finished, calm study with every section; ``changes`` replace fields of the run."""
    fields: dict[str, Any] = {
        "nearfar_version": "0.1.0",
        "verb": "study",
        "arguments": {"tier": None, "seed": 1},
        "started": "2025-01-02T03:04:05Z",
        "ended": "2025-01-02T03:06:07Z",
        "status": "finished",
        "seed": 1,
        "machine": machine(),
        "findings": findings(),
        "noise": calm(),
        "sections": Sections(
            latency=latency(),
            bandwidth=bandwidth(),
            stream=stream(),
            mapped=mapped(),
            parallelism=parallelism(),
            blocks=blocks(),
            access=access(),
            persistence=persistence(),
            loaded=loaded(),
            tails=tails(),
        ),
        "skipped": [],
    }
    return Run(**{**fields, **changes})


def earlier() -> Run:
    """The same machine, measured before, with slower memory and no mapped section."""
    sections = Sections(latency=latency(factor=1.2), bandwidth=bandwidth(), stream=stream())
    return study(
        started="2024-12-01T00:00:00Z", ended="2024-12-01T00:02:00Z", sections=sections
    )  # fmt: skip


def interrupted() -> Run:
    """Stopped after the latency section."""
    return study(
        status="interrupted", sections=Sections(latency=latency()), noise=None,
        skipped=[Skipped(section="bandwidth", what="all of it", why="interrupted before it began")],
    )  # fmt: skip


def noisy() -> Run:
    reasons = ["other processes used 0.97 processors", "read on dram spread by 41%"]
    return study(
        noise=NoiseRecord(
            noisy=True, reasons=reasons, foreign_cpus=0.97, steal=0.0, least_cpu_share=0.71,
            worst_spread=0.41,
        )
    )  # fmt: skip


def close_knees() -> Run:
    """Three knees, two of them so near that their labels have no room side by side."""
    result = latency()
    result.knees = [
        Knee(region_bytes=size, low=size * 3 // 4, high=size * 5 // 4)
        for size in (32 * KIB, 555_418, 2 * MIB)
    ]
    return study(sections=Sections(latency=result))


def oversubscribed() -> Run:
    """More threads than processors, arrays that fit the cache, and an emulated tier."""
    tiers = ("dram", "shm:")
    speeds = bandwidth(tiers, (1, 2, 4, 8, 16), 8)
    speeds.in_cache = True
    small = stream((1, 2, 4, 8, 16), 8)
    small.in_cache = True
    return study(sections=Sections(latency=latency(tiers), bandwidth=speeds, stream=small))


def hostile() -> Run:
    """Strings that would be markup if they were not escaped."""
    evil = "<script>alert('nearfar')</script>\"><img src=x onerror=alert(1)>"
    sections = Sections(
        latency=latency((evil,)), bandwidth=bandwidth((evil,)), mapped=mapped(evil)
    )  # fmt: skip
    return study(
        sections=sections,
        machine={**machine(), "processor": evil, evil: evil},
        findings=[Finding(check=evil, level="warning", found=evil, why=evil, mend=evil)],
        skipped=[Skipped(section=evil, what=evil, why=evil)],
    )
