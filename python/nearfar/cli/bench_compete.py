"""``nearfar bench compete``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options

if TYPE_CHECKING:
    from nearfar.records.together import CompeteRow


class Mode(StrEnum):
    """What the far threads copy: from the first to the second."""

    FAR_FAR = "far-far"
    FAR_NEAR = "far-near"
    NEAR_FAR = "near-far"


@options.grouped
def compete(
    mode: Annotated[
        Mode, typer.Option("--mode", help="What far threads copy: from the first to the second.")
    ] = Mode.FAR_FAR,
    near: options.Near = "dram",
    far: options.Far = "shm:",
    near_threads: options.MaybeNearThreads = None,
    far_threads: options.MaybeFarThreads = None,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="All splits of the threads, from one far thread on."),
    ] = False,
    size: options.Size = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", metavar="N", min=1, help="Copies of each thread a repeat."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Rows as `nearfar fit contention` takes them.",
            callback=options.writable,
        ),
    ] = None,
    *,
    shared: options.Measuring,
) -> None:
    """Near and far memory copied at once: what each side gets, and sudden drops.

    Near threads copy near to near; far threads copy in the direction of --mode. Each thread has
    arrays of its own and copies them again and again, without waiting for others. Rates are
    summed over the threads of a side, over the span in which all threads ran. Every iteration of
    every thread is kept, and drops are listed with what the kernel knows of them. With --sweep
    the threads (all processors, or those of both sides together) are split in all ways.

    Before any split runs, each side copies alone; from that the rates of both at once are
    predicted, and shown with their error.

    Examples:

        nearfar bench compete

        nearfar bench compete --mode near-far --far fsdax:/mnt/pmem --near-threads 6 --far-threads 2

        nearfar bench compete --far numa:1 --sweep --csv rows.csv --json -
    """
    from nearfar.cli.forecasts import before_run, predict_compete
    from nearfar.cli.plans import compete_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure import compete as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import text

    budget_s = shared.budget_s(20.0)
    arguments = {"mode": mode.value, "near": near, "far": far, "time_s": budget_s, "sweep": sweep}
    with recorded("bench compete", arguments, shared.kept) as recording:
        plan, last_cache = compete_plan(
            recording, mode.value, near, far, near_threads=near_threads, far_threads=far_threads,
            sweep=sweep, cpus=shared.cpus, size=size, iterations=iterations,
            feeds_fit=csv is not None,
        )  # fmt: skip
        effort = Effort(budget_s, shared.runs, shared.warmup)
        forecast = before_run(
            recording, "compete", lambda: predict_compete(recording.session, plan, effort)
        )
        result, skipped = measurement.measure(recording.session, plan, effort, last_cache, forecast)
        recording.keep("compete", result, skipped)
    if csv:
        _write_rows(csv, result.rows)
    recording.show(text.compete(result), recording.document(result), shared.json)


def _write_rows(path: Path, rows: Sequence[CompeteRow]) -> None:
    """The table of the published files: decimal MB/s."""
    from nearfar.cli.console import write_table

    def cells(row: CompeteRow) -> list[object]:
        rates = (
            row.near_bandwidth_bytes_per_s,
            row.far_bandwidth_bytes_per_s,
            row.sum_bandwidth_bytes_per_s,
        )
        return [row.near_threads, row.far_threads, *(f"{rate / 1e6:.2f}" for rate in rates)]

    heads = ["near_threads", "far_threads", "near_MBps", "far_MBps", "sum_MBps"]
    write_table(path, heads, [cells(row) for row in rows])
