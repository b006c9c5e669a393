"""``nearfar bench stencil``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.measure.session import Effort
    from nearfar.measure.stencil import StencilPlan
    from nearfar.records.together import StencilResult, StencilSplit
    from nearfar.workflows.recording import Recording


class Kernel(StrEnum):
    """The stencil that is applied to the array."""

    STENCIL8 = "stencil8"
    STENCIL7 = "stencil7"


@flags.grouped
def stencil(
    context: typer.Context,
    far_rows: Annotated[
        str,
        typer.Option("--far-rows", metavar="R|auto|FILE", help="Rows in far memory, see above."),
    ],
    near: flags.Near = "dram",
    far: flags.Far = "shm:",
    rows: Annotated[int, typer.Option("--rows", metavar="M", min=1, max=ranges.MOST_COUNT)] = 8192,
    cols: Annotated[int, typer.Option("--cols", metavar="N", min=1, max=ranges.MOST_COUNT)] = 8192,
    kernel: Annotated[
        Kernel,
        typer.Option(
            "--kernel", help="Eight neighbors in 2D, or seven points in 3D (a row is a plane)."
        ),
    ] = Kernel.STENCIL8,
    version: flags.Version = flags.StencilVersion.DIRECT,
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    split_only: Annotated[
        bool, typer.Option("--split-only", help="With auto: predict the split, and stop.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Write the row in the form that `nearfar predict split --calibrate` reads.",
            callback=flags.writable,
        ),
    ] = None,
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
    from nearfar.measure import stencil as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows.far_rows import check_predictable, parse_far_rows, read_split
    from nearfar.workflows.plans import last_cache, stencil_plan
    from nearfar.workflows.recording import recorded

    source = parse_far_rows(far_rows)
    if split_only:
        _check_split_only(predicts=source is None, csv=csv)
    split = read_split(source, context) if isinstance(source, Path) else None
    wanted = None if isinstance(source, Path) else source
    if split:
        rows, cols, near, far = split.rows, split.cols, split.near, split.far
        kernel, version = Kernel(split.kernel), flags.StencilVersion(split.version)
        near_threads, far_threads = split.near_threads, split.far_threads
        wanted = split.far_rows
    budget_s = shared.budget_s(20.0)
    arguments = {
        "kernel": kernel.value,
        "rows": rows,
        "cols": cols,
        "far_rows": far_rows,
        "version": version.value,
        "near": near,
        "far": far,
        "time_s": budget_s,
    }
    with recorded("bench stencil", arguments, shared.kept) as recording:
        plan = stencil_plan(
            recording,
            kernel.value,
            (rows, cols, wanted),
            version.value,
            (near, far),
            (near_threads, far_threads),
            cpus=shared.cpus,
            seed=shared.seed,
            beside_alone=split is not None or wanted is None,
        )
        _check_row(csv, plan, open_split=wanted is None)
        if wanted is None:
            check_predictable(plan)
        cache = last_cache(recording, plan.teams.cpus[0])
        effort = Effort(budget_s, shared.runs, shared.warmup)
        if wanted is None:
            plan, split = _split(recording, plan, effort, cache)
        if not split_only:
            result = measurement.measure(recording.session, plan, effort, cache, split)
            recording.keep("stencil", result, [])
    if split_only and split:
        recording.show(terminal.stencil_split(split), recording.document(split), shared.json)
        return
    if csv:
        _write_row(csv, result)
    recording.show(terminal.stencil(result), recording.document(result), shared.json)


def _check_split_only(*, predicts: bool, csv: Path | None) -> None:
    if not predicts:
        raise BadInputError("--split-only requires --far-rows auto", "give --far-rows auto")
    if csv:
        raise BadInputError("--split-only measures no row for --csv", "leave one of them out")


def _split(
    recording: Recording, plan: StencilPlan, effort: Effort, cache: int
) -> tuple[StencilPlan, StencilSplit]:
    """Predict the split, record it, and plan the run with it."""
    from nearfar.workflows.far_rows import predict_split

    split = predict_split(recording.session, plan, effort, cache)
    recording.keep("stencil_split", split, [])
    plan = replace(plan, far_rows=split.far_rows)
    plan.check_room()
    return plan, split


def _check_row(csv: Path | None, plan: StencilPlan, *, open_split: bool) -> None:
    """Raise BadInputError for a row that cannot calibrate a model."""
    one_side = not open_split and not 0 < plan.far_rows < plan.rows
    if csv and (plan.teams.oversubscribed or one_side or plan.kernel != "stencil8"):
        raise BadInputError(
            "such a row cannot calibrate a split: both sides need rows, and each thread a CPU",
            "use fewer threads, another --far-rows and stencil8, or leave --csv out",
        )


def _write_row(path: Path, r: StencilResult) -> None:
    from nearfar.report.console import write_table

    write_table(
        path,
        ["rows", "cols", "far_rows", "near_threads", "far_threads", "near_s", "far_s", "total_s"],
        [
            [
                r.rows,
                r.cols,
                r.far_rows,
                r.near_threads,
                r.far_threads,
                *(f"{seconds:.6g}" for seconds in (r.near_time_s, r.far_time_s, r.total_time_s)),
            ]
        ],
    )
