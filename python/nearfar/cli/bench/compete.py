"""``nearfar bench compete``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.records.choices import CompeteMode

Mode = Annotated[
    CompeteMode, typer.Option("--mode", help="Far copies: source tier, then destination tier.")
]
Sweep = Annotated[
    bool,
    typer.Option("--sweep", help="Run all splits of the threads, starting at one far thread."),
]
Iterations = Annotated[
    int | None, flags.count("--iterations", help="Copies per thread and repeat.")
]
Csv = Annotated[
    Path | None, flags.table("Write the rows in the form that `nearfar fit contention` reads.")
]


@flags.expand_dataclasses
def compete(
    mode: Mode = "far-far",
    near: flags.Near = "dram",
    far: flags.Far = "shm:",
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    sweep: Sweep = False,
    size: flags.Size = None,
    iterations: Iterations = None,
    csv: Csv = None,
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
    from nearfar.report.terminal import together as together_tables
    from nearfar.workflows.bench import compete as workflow

    copies = workflow.Copies(mode, near, far, near_threads, far_threads, sweep, size, iterations)
    done = workflow.measure(copies, shared.options, csv=csv)
    show_measured(done, together_tables.compete(done.result), shared.output)
