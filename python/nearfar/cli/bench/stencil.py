"""``nearfar bench stencil``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.errors import BadInputError
from nearfar.records.choices import StencilKernel

FarRows = Annotated[str, flags.text("--far-rows", "R|auto|FILE", "Rows in far memory, see above.")]
Rows = Annotated[int, flags.count("--rows", metavar="M")]
Columns = Annotated[int, flags.count("--cols")]
Kernel = Annotated[
    StencilKernel,
    typer.Option(
        "--kernel", help="Eight neighbors in 2D, or seven points in 3D (a row is a plane)."
    ),
]
SplitOnly = Annotated[
    bool, typer.Option("--split-only", help="With auto: predict the split, and stop.")
]
Csv = Annotated[
    Path | None,
    flags.table("Write the row in the form that `nearfar predict split --calibrate` reads."),
]


@flags.expand_dataclasses
def stencil(
    context: typer.Context,
    far_rows: FarRows,
    near: flags.Near = "dram",
    far: flags.Far = "shm:",
    rows: Rows = 8192,
    cols: Columns = 8192,
    kernel: Kernel = "stencil8",
    version: flags.BorderVersion = "direct",
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    split_only: SplitOnly = False,
    csv: Csv = None,
    *,
    shared: flags.Measuring,
) -> None:
    """Measure a stencil over an array whose rows are split between near and far memory.

    Each element becomes the mean of its eight neighbors, in ten sweeps between two arrays. The last
    R rows are in far memory and belong to the far threads; the others are near. Times are those of
    one sweep: the slowest near thread, the slowest far thread, and the whole sweep. Every repeat
    must equal a serial sweep, bit for bit. With --kernel stencil7 a row is a plane of N × N
    elements, and each element becomes the mean of itself and its six neighbors in three dimensions.

    --far-rows auto first predicts the split, from concurrent copies on both tiers and from the cost
    of the sweep in near memory. It then compares the run with the prediction, with all rows near
    and with all rows far. --split-only --json FILE stops after the prediction; --far-rows FILE runs
    it later.

    Examples:

        nearfar bench stencil --far-rows 2048

        nearfar bench stencil --far fsdax:/mnt/pmem --far-rows 750 --version ghost --far-threads 2

        nearfar bench stencil --far paced:dram@optane-100 --far-rows auto
    """
    from nearfar.report.terminal import together
    from nearfar.workflows.bench import stencil as workflow

    work = workflow.Work(
        far_rows, near, far, rows, cols, kernel, version, near_threads, far_threads
    )
    if split_only:
        if csv:
            raise BadInputError("--split-only measures no row for --csv", "leave one of them out")
        split = workflow.predict(work, shared.options)
        show_measured(split, together.stencil_split(split.result), shared.output)
        return
    done = workflow.measure(work, shared.options, csv=csv, given=flags.given(context))
    show_measured(done, together.stencil(done.result), shared.output)
