"""``nearfar bench compete``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges

if TYPE_CHECKING:
    from nearfar.records.together import CompeteRow


class Mode(StrEnum):
    """Direction of the far threads' copies: source, then destination."""

    FAR_FAR = "far-far"
    FAR_NEAR = "far-near"
    NEAR_FAR = "near-far"


@flags.grouped
def compete(
    mode: Annotated[
        Mode, typer.Option("--mode", help="Far copies: source tier, then destination tier.")
    ] = Mode.FAR_FAR,
    near: flags.Near = "dram",
    far: flags.Far = "shm:",
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Run all splits of the threads, starting at one far thread."),
    ] = False,
    size: flags.Size = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations",
            metavar="N",
            min=1,
            max=ranges.MOST_COUNT,
            help="Copies per thread and repeat.",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Write the rows in the form that `nearfar fit contention` reads.",
            callback=flags.writable,
        ),
    ] = None,
    *,
    shared: flags.Measuring,
) -> None:
    """Measure contention between near and far memory: bandwidth of concurrent copies, and drops.

    Near threads copy near to near; far threads copy in the direction of --mode. Each thread copies
    its own arrays repeatedly and does not wait for other threads. Rates are summed over the threads
    of a side, over the span in which all threads ran. The rate of every iteration is recorded, and
    drops are listed with what the kernel reports about them. --sweep runs every split of the
    threads (all CPUs, or the threads of both sides together).

    Before any split runs, each side copies alone. A model predicts the concurrent rates from that,
    and the result shows the prediction error.

    Examples:

        nearfar bench compete

        nearfar bench compete --mode near-far --far fsdax:/mnt/pmem --near-threads 6 --far-threads 2

        nearfar bench compete --far numa:1 --sweep --csv rows.csv --json -
    """
    from nearfar.measure import compete as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows.forecasts import before_run, predict_compete
    from nearfar.workflows.plans import compete_plan
    from nearfar.workflows.recording import recorded

    budget_s = shared.budget_s(20.0)
    arguments = {"mode": mode.value, "near": near, "far": far, "time_s": budget_s, "sweep": sweep}
    with recorded("bench compete", arguments, shared.kept) as recording:
        plan, last_cache = compete_plan(
            recording,
            mode.value,
            near,
            far,
            near_threads=near_threads,
            far_threads=far_threads,
            sweep=sweep,
            cpus=shared.cpus,
            size=size,
            iterations=iterations,
            feeds_fit=csv is not None,
        )
        effort = Effort(budget_s, shared.runs, shared.warmup)
        forecast = before_run(
            recording, "compete", lambda: predict_compete(recording.session, plan, effort)
        )
        result, skipped = measurement.measure(recording.session, plan, effort, last_cache, forecast)
        recording.keep("compete", result, skipped)
    if csv:
        _write_rows(csv, result.rows)
    recording.show(terminal.compete(result), recording.document(result), shared.json)


def _write_rows(path: Path, rows: Sequence[CompeteRow]) -> None:
    """Write the table of the published files, in decimal MB/s."""
    from nearfar.report.console import write_table

    def cells(row: CompeteRow) -> list[object]:
        rates = (
            row.near_bandwidth_bytes_per_s,
            row.far_bandwidth_bytes_per_s,
            row.sum_bandwidth_bytes_per_s,
        )
        return [row.near_threads, row.far_threads, *(f"{rate / 1e6:.2f}" for rate in rates)]

    heads = ["near_threads", "far_threads", "near_MBps", "far_MBps", "sum_MBps"]
    write_table(path, heads, [cells(row) for row in rows])
