"""Made-up results of the benchmarks of near and far memory at once, with their forecasts."""

from __future__ import annotations

from typing import Any

from factories.shaped import around, shaped
from nearfar.records.choices import PipelineStage, Side
from nearfar.records.figures import Origin
from nearfar.records.forecasts import (
    CompeteForecast,
    CompeteForecasts,
    ForecastError,
    PipelineForecast,
    PublishedError,
)
from nearfar.records.together import (
    CompeteDrop,
    CompeteResult,
    CompeteRow,
    CompeteThread,
    PipelineLap,
    PipelineResult,
    StencilResult,
    StencilSplit,
)
from nearfar.units import MIB


def _compete_row(near: int, far: int, cpus: int = 2) -> CompeteRow:
    rates = {"near": 6.1e9 * near**0.8, "far": 3.2e9 * far**0.7}
    rates["sum"] = sum(rates.values())
    near_side: list[tuple[Side, int]] = [("near", i) for i in range(near)]
    names = [*near_side, *(("far", near + i) for i in range(far))]
    threads = [
        CompeteThread(
            side=side,
            cpu=cpu,
            end_s=[0.01 * (i + 1) for i in range(50)],
            rate_bytes_per_s=[
                (6.1e9 if side == "near" else 3.2e9) * (0.4 if i == 20 and cpu else 1.0)
                for i in range(50)
            ],
        )
        for side, cpu in names
    ]
    drops = [
        CompeteDrop(
            side=side,
            cpu=cpu,
            repeat=0,
            start_s=0.2,
            length_s=0.025,
            depth=0.6,
            period_s=None,
            off_cpu_s=0.015,
            steal_s=0.0,
            involuntary_switches=2,
            minor_faults=0,
            major_faults=0,
            cause="pushed aside",
        )
        for side, cpu in names
        if cpu
    ]
    figures = {f"{side}_bandwidth_bytes_per_s": around(rate) for side, rate in rates.items()}
    figures["common_time_s"] = around(3.5, 0.0, "sum")
    return CompeteRow(
        mode="far-near",
        near="dram",
        far="shm:",
        near_threads=near,
        far_threads=far,
        oversubscribed=near + far > cpus,
        size_bytes=128 * MIB,
        in_cache=False,
        threads=threads,
        drops=drops,
        **shaped(figures, Origin.EMULATED),
    )


def compete(threads: int = 2, cpus: int = 2) -> CompeteResult:
    rows = [_compete_row(threads - far, far, cpus) for far in range(1, threads)]
    return CompeteResult(**dict(rows[-1]), rows=rows)


def published() -> list[PublishedError]:
    """As a model reports them: of several rows, and of one."""
    return [
        PublishedError(
            table="made_up_rows.csv",
            what="near rate of each row, from the other rows",
            cases=5,
            mean_error=0.0123,
            worst_error=-0.0345,
        ),
        PublishedError(
            table="made_up_row.csv",
            what="total time, nothing fitted",
            cases=1,
            mean_error=0.051,
            worst_error=0.051,
        ),
    ]


def _with_predicted(measured: dict[str, float], predicted: dict[str, float]) -> dict[str, Any]:
    """Keyword arguments of a forecast."""
    seen = shaped({key: around(value) for key, value in measured.items()}, Origin.EMULATED)
    found = shaped({key: around(value) for key, value in predicted.items()}, Origin.MODELLED)
    for part in ("intervals", "provenance"):
        found[part] = seen[part] | found[part]
    return seen | found


def _predicted(row: CompeteRow) -> CompeteForecast:
    """A little off what the row then reached."""
    rates = {"near": 1.04 * row.near_bandwidth_bytes_per_s, "far": row.far_bandwidth_bytes_per_s}
    rates["sum"] = sum(rates.values())
    alone = {"near_alone": 7.1e9, "far_alone": 3.3e9, "together": 9.9e9}
    return CompeteForecast(
        **_with_predicted(
            *({f"{k}_bandwidth_bytes_per_s": v for k, v in part.items()} for part in (alone, rates))
        ),
        near_threads=row.near_threads,
        far_threads=row.far_threads,
        calibration_level=1,
        calibration="1: copies of each side alone measured here; no row of both",
        predicted_on="2026-07-01T12:00:00+00:00",
    )


def compete_foretold(threads: int = 3) -> CompeteResult:
    """Competition whose rates were predicted from each side alone."""
    rows = []
    for row in compete(threads, threads).rows:
        reported = _predicted(row)
        keys = [f"{side}_bandwidth_bytes_per_s" for side in ("near", "far", "sum")]
        errors = [
            ForecastError(key=key, error=getattr(reported, key) / getattr(row, key) - 1)
            for key in keys
        ]
        rows.append(row.model_copy(update={"errors": errors}))
    forecast = CompeteForecasts(
        mode="far-near",
        near="dram",
        far="shm:",
        rows=[_predicted(row) for row in rows],
        published=published(),
    )
    return CompeteResult(**dict(rows[-1]), rows=rows, forecast=forecast)


def pipeline_foretold() -> PipelineResult:
    """A pipeline whose times were predicted from its stages alone."""
    result = pipeline()
    predicted = {
        "generate_time_s": 9.0,
        "transfer_time_s": 2.2,
        "analyse_time_s": 6.1,
        "total_time_s": 9.0,
    }
    measured = {
        "generate_alone_time_s": 8.4,
        "analyse_alone_time_s": 5.9,
        "near_copy_bandwidth_bytes_per_s": 2.1e10,
        "transfer_bandwidth_bytes_per_s": 1.2e10,
        "far_read_bandwidth_bytes_per_s": 1.6e10,
    }
    forecast = PipelineForecast(
        **_with_predicted(measured, predicted),
        near="dram",
        far="shm:",
        near_threads=1,
        far_threads=1,
        calibration_level=1,
        calibration="1: stages of each side alone measured here; no run of both",
        predicted_on="2026-07-01T12:00:00+00:00",
        published=published(),
    )
    errors = [
        ForecastError(key=key, error=value / getattr(result, key) - 1)
        for key, value in predicted.items()
    ]
    return result.model_copy(update={"forecast": forecast, "errors": errors})


def stencil(far_rows: int = 1024) -> StencilResult:
    near_rows = 4096 - far_rows
    figures = {"total_time_s": around(2.1e-5 * max(near_rows, 2 * far_rows))}
    for side, rows, each in (("near", near_rows, 2e-5), ("far", far_rows, 4e-5)):
        if rows:
            figures[f"{side}_time_s"] = around(rows * each)
            figures[f"{side}_bandwidth_bytes_per_s"] = around(8192 * 16 / each)
    return StencilResult(
        rows=4096,
        cols=8192,
        far_rows=far_rows,
        version="ghost",
        near="dram",
        far="shm:",
        near_threads=1,
        far_threads=1,
        oversubscribed=False,
        in_cache=False,
        sweeps=10,
        matches_serial=True,
        **shaped(figures, Origin.EMULATED),
    )


def stencil_split() -> StencilSplit:
    """Predicted a little off the stencil that ran."""
    times = {"near_time_s": 0.0600, "far_time_s": 0.0400, "total_time_s": 0.0600}
    copies = {
        "near_bandwidth_bytes_per_s": 5.3e10,
        "far_bandwidth_bytes_per_s": 2.6e10,
        "near_alone_bandwidth_bytes_per_s": 5.5e10,
        "near_element_time_s": 2.4e-9,
    }
    return StencilSplit(
        **_with_predicted(copies, times),
        kernel="stencil8",
        rows=4096,
        cols=8192,
        far_rows=1024,
        version="ghost",
        near="dram",
        far="shm:",
        near_threads=1,
        far_threads=1,
        traffic_factor=1.0,
        calibration_level=1,
        calibration="1: software cost measured here; competition from 1 measured row",
        predicted_on="2026-07-01T12:00:00+00:00",
        published=published(),
    )


def stencil_with_alone() -> StencilResult:
    """A run of a predicted split, and of all rows on either side."""
    alone = shaped(
        {"near_alone_time_s": around(0.083), "far_alone_time_s": around(0.165)}, Origin.EMULATED
    )
    result = stencil()
    result.intervals |= alone.pop("intervals")
    result.provenance |= alone.pop("provenance")
    return result.model_copy(update={**alone, "split": stencil_split()})


def pipeline(near_only: bool = False) -> PipelineResult:
    times = {"generate": 9.1, "analyse": 6.4, "total": 15.5 if near_only else 9.6}
    if not near_only:
        times |= {"generate_idle": 0.5, "transfer": 2.1, "transfer_idle": 1.1}
    figures = {f"{stage}_time_s": around(seconds) for stage, seconds in times.items()}
    near = [
        PipelineLap(side="near", stage="generate", start_s=0.1 * i, end_s=0.1 * i + 0.09)
        for i in range(6)
    ]
    away: list[PipelineStage] = ["analyse"] if near_only else ["transfer_idle", "transfer"]
    far = [
        PipelineLap(
            side="near" if near_only else "far",
            stage=stage,
            start_s=0.1 * i + 0.03 * (n + 3 * near_only),
            end_s=0.1 * (i + 1),
        )
        for i in range(6)
        for n, stage in enumerate(away)
    ]
    return PipelineResult(
        elements=16_000_000,
        iterations=100,
        near="dram",
        far=None if near_only else "shm:",
        near_threads=1,
        far_threads=0 if near_only else 1,
        oversubscribed=False,
        in_cache=False,
        compared_iterations=50,
        timeline=[*near, *far],
        **shaped(figures, Origin.MEASURED if near_only else Origin.EMULATED),
    )
