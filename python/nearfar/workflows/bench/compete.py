"""Concurrent copies in near and far memory, predicted and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.files import write_table
from nearfar.measure import compete
from nearfar.workflows import forecasting
from nearfar.workflows.plans import compete_plan
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.records.choices import CompeteMode
    from nearfar.records.together import CompeteResult, CompeteRow
    from nearfar.workflows.options import Options


@dataclass(frozen=True)
class Copies:
    """Copies of both sides: direction, tiers, threads of each side, bytes of an array."""

    mode: CompeteMode = "far-far"
    near: str = "dram"
    far: str = "shm:"
    near_threads: int | None = None
    far_threads: int | None = None
    sweep: bool = False
    size: str | None = None
    iterations: int | None = None


def measure(
    copies: Copies, options: Options, *, csv: Path | None = None
) -> Measured[CompeteResult]:
    """Measure; ``csv`` is a file for the rows that ``nearfar fit contention`` reads."""
    arguments = {
        "mode": copies.mode,
        "near": copies.near,
        "far": copies.far,
        "time_s": options.budget_s(20.0),
        "sweep": copies.sweep,
    }
    with recorded("bench compete", arguments, options, "compete") as recording:
        plan, last_cache = compete_plan(recording, copies, options, feeds_fit=csv is not None)
        effort = options.effort(20.0)
        prediction = forecasting.before_run(
            recording,
            "compete",
            lambda: forecasting.predict_compete(recording.session, plan, effort),
        )
        result, skipped = compete.measure(recording.session, plan, effort, last_cache, prediction)
        recording.keep("compete", result, skipped)
    if csv:
        _write_rows(csv, result.rows)
    return recording.measured(result)


def _write_rows(path: Path, rows: Sequence[CompeteRow]) -> None:
    """Write the table of the published files, in decimal MB/s."""

    def cells(row: CompeteRow) -> list[object]:
        rates = (
            row.near_bandwidth_bytes_per_s,
            row.far_bandwidth_bytes_per_s,
            row.sum_bandwidth_bytes_per_s,
        )
        return [row.near_threads, row.far_threads, *(f"{rate / 1e6:.2f}" for rate in rates)]

    heads = ["near_threads", "far_threads", "near_MBps", "far_MBps", "sum_MBps"]
    write_table(path, heads, [cells(row) for row in rows])
