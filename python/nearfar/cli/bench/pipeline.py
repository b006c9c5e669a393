"""``nearfar bench pipeline``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_measured

NearOnly = Annotated[
    bool,
    typer.Option(
        "--near-only", help="Generate and analyze with near threads alone, for comparison."
    ),
]
Elements = Annotated[
    int | None, flags.count("--elements", help="Elements of a vector (16,000,000).")
]
Iterations = Annotated[int | None, flags.count("--iterations", help="Vectors to generate (5,000).")]
Quick = Annotated[bool, typer.Option("--quick", help="Run 1,000,000 elements and 50 iterations.")]
Csv = Annotated[
    Path | None, flags.table("Write the row in the form that `nearfar predict pipeline` reads.")
]


@flags.expand_dataclasses
def pipeline(
    near: flags.Near = "dram",
    far: flags.Far = "shm:",
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    near_only: NearOnly = False,
    elements: Elements = None,
    iterations: Iterations = None,
    quick: Quick = False,
    csv: Csv = None,
    *,
    shared: flags.Measuring,
) -> None:
    """Measure a pipeline: near threads generate while far threads copy and analyze the last result.

    Near threads multiply a vector by a sparse matrix repeatedly, with damping. Far threads copy
    each finished vector to far memory and read it there five times. A vector is not overwritten
    before its copy is complete. Times are totals of all iterations, with waiting reported
    separately. The results of the first 50 iterations must equal those of near threads alone, bit
    for bit. The full size runs once, for minutes, unless --runs is given. With --time, each repeat
    has as many iterations as fit.

    Before the run, each stage is timed alone. A model predicts the times from that, and the result
    shows the prediction error.

    Examples:

        nearfar bench pipeline --quick

        nearfar bench pipeline --far numa:1 --near-threads 6 --far-threads 2 --csv cal.csv

        nearfar bench pipeline --near-only --near-threads 8 --elements 1000000 --iterations 100
    """
    from nearfar.report.terminal import together
    from nearfar.workflows.bench import pipeline as workflow

    work = workflow.Work(
        near, far, near_threads, far_threads, near_only, elements, iterations, quick
    )
    done = workflow.measure(work, shared.options, csv=csv)
    show_measured(done, together.pipeline_run(done.result), shared.output)
