"""Made-up results of the benchmarks of one memory."""

from __future__ import annotations

from typing import Any

from factories.shaped import around, shaped
from nearfar.records.allocators import AllocatorFacts, MallocResult, MallocRow
from nearfar.records.results import (
    MappedPoint,
    MappedRatio,
    MappedResult,
    MappingFacts,
    StreamKernel,
    StreamResult,
    StreamRun,
)
from nearfar.units import GIB, KIB, MIB


def _stream_run(threads: int, cpus: int) -> dict[str, Any]:
    rates = {"copy": 9.1e9, "scale": 8.9e9, "add": 10.2e9, "triad": 10.1e9}
    kernels = {
        name: StreamKernel(
            write_allocate=True,
            **shaped(
                {
                    "best_bandwidth_bytes_per_s": around(
                        rate * min(threads, cpus) ** 0.75, 0.02, "best"
                    ),
                    "median_bandwidth_bytes_per_s": around(
                        rate * min(threads, cpus) ** 0.75 * 0.98
                    ),
                },
                seed=None,
            ),
        )
        for name, rate in rates.items()
    }
    return {
        "tier_a": "dram",
        "tier_b": "dram",
        "tier_c": "dram",
        "cpus": list(range(threads)),
        "oversubscribed": threads > cpus,
        "size_bytes": 128 * MIB,
        "in_cache": False,
        "worst_error": 1.1e-15,
        **kernels,
    }


def stream(threads: tuple[int, ...] = (1, 2), cpus: int = 2) -> StreamResult:
    runs = [_stream_run(n, cpus) for n in threads]
    return StreamResult(**runs[-1], sweep=[StreamRun(**run) for run in runs])


_METHODS = {"mapped": 1.0, "buffered": 1.35, "direct": 0.42, "uring": 0.9}


def _mapped_point(method: Any, direction: Any, pattern: Any, warmth: Any) -> MappedPoint:
    rate = 3.1e9 * _METHODS[method]
    rate *= 0.35 if direction == "write" else 1.0
    rate *= 0.45 if pattern == "random" else 1.0
    rate *= {"cold": 0.3, "warm": 1.0, "resident": 2.2}[warmth]
    faults = around(16_500.0 if method == "mapped" else 12.0, 0.001)
    return MappedPoint(
        method=method,
        direction=direction,
        pattern=pattern,
        warmth=warmth,
        block_bytes=4 * KIB,
        queue_depth=32 if method == "uring" else 1,
        **shaped({"bandwidth_bytes_per_s": around(rate, 0.05), "faults_per_gib": faults}),
    )


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
            against=against,  # type: ignore[arg-type]
            direction=direction,
            pattern=pattern,
            warmth=warmth,
            **shaped({"ratio": around((0.7 if pattern == "random" else 1.0) / share, 0.06)}),
        )
        for direction in ("read", "write")
        for pattern in ("sequential", "random")
        for warmth in (("cold", "warm") if direction == "read" else ("warm",))
        for against, share in _METHODS.items()
        if against != "mapped"
    ]
    return MappedResult(
        path=path,
        size_bytes=GIB // 2,
        file_system="ext4",
        mapping=MappingFacts(
            descriptor=5,
            first_address=0x7F5A_4000_0000,
            last_address=0x7F5A_5FFF_FFFF,
            page_bytes=4096,
            huge_bytes=0,
            dax=False,
            map_sync=False,
            read_ahead_bytes=128 << 10,
        ),
        points=points,
        ratios=ratios,
        **shaped({"fault_time_ns": around(540.0)}, seed=None),
    )


def _malloc_row(test: Any, allocator: str, threads: int, cpus: int) -> MallocRow:
    speed = {"glibc": 1.0, "mimalloc": 0.6, "jemalloc": 0.9}[allocator]
    cpu_s = {"small": 0.24, "free-loop": 0.31, "warm": 0.11}[test] * speed
    peak = {"small": 272e6, "free-loop": 90e6, "warm": 1.6e6}[test]
    figures = {
        "cpu_time_s": around(cpu_s),
        "wall_time_s": around(cpu_s / min(threads, cpus) * 1.1),
        "peak_memory_bytes": around(peak),
        "settled_memory_bytes": around(peak * 0.8),
        "settled_share": around(0.8),
    }
    if test == "warm":
        figures["pair_time_ns"] = around(22 * speed)
    if allocator != "glibc":
        figures |= {
            "ratio_to_glibc": around(speed),
            "wall_ratio_to_glibc": around(speed),
            "peak_ratio_to_glibc": around(1.0),
        }
    blocks = {"small": 1_000_000, "free-loop": 10_000, "warm": 5_000_000}[test]
    return MallocRow(
        test=test,
        allocator=allocator,
        threads=threads,
        oversubscribed=threads > cpus,
        count=blocks,
        pairs=blocks * (10 if test == "free-loop" else 1),
        **shaped(figures),
    )


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
