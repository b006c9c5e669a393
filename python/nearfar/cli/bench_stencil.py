"""``nearfar bench stencil``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.cli.recording import Recording
    from nearfar.measure.session import Effort
    from nearfar.measure.stencil import StencilPlan
    from nearfar.records.together import StencilResult, StencilSplit


class Kernel(StrEnum):
    """What is swept over the array."""

    STENCIL8 = "stencil8"
    STENCIL7 = "stencil7"


@options.grouped
def stencil(
    context: typer.Context,
    far_rows: Annotated[
        str,
        typer.Option("--far-rows", metavar="R|auto|FILE", help="Rows on the far side, see above."),
    ],
    near: options.Near = "dram",
    far: options.Far = "shm:",
    rows: Annotated[int, typer.Option("--rows", metavar="M", min=1)] = 8192,
    cols: Annotated[int, typer.Option("--cols", metavar="N", min=1)] = 8192,
    kernel: Annotated[
        Kernel,
        typer.Option("--kernel", help="Eight neighbours; or seven points, a row being a plane."),
    ] = Kernel.STENCIL8,
    version: options.Version = options.StencilVersion.DIRECT,
    near_threads: options.MaybeNearThreads = None,
    far_threads: options.MaybeFarThreads = None,
    split_only: Annotated[
        bool, typer.Option("--split-only", help="With auto: predict the split, and stop.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="As `nearfar split --calibrate` takes it.",
            callback=options.writable,
        ),
    ] = None,
    *,
    shared: options.Measuring,
) -> None:
    """A stencil over an array whose rows near and far memory share.

    The mean of the eight neighbours of each element, ten sweeps, two arrays that change places.
    The last R rows lie far and are worked on by far threads, the others near. Times are those of
    one sweep: the slowest near thread, the slowest far thread, and the whole. Every repeat must
    leave the same bits as a plain serial sweep. With --kernel stencil7 a row is a plane of N × N
    elements, and each element the mean of itself and its six neighbours in three dimensions.

    With --far-rows auto the split is predicted first, from copies on both tiers at once and from
    what the sweep costs on the near side; the run is then compared with the prediction, and with
    all rows near and all rows far. --split-only --json FILE stops at the prediction; --far-rows
    FILE runs it later.

    Examples:

        nearfar bench stencil --far-rows 2048

        nearfar bench stencil --far fsdax:/mnt/pmem --far-rows 750 --version ghost --far-threads 2

        nearfar bench stencil --far paced:dram@optane-100 --far-rows auto
    """
    from nearfar.cli.far_rows import check_predictable, parse_far_rows, read_split
    from nearfar.cli.plans import last_cache, stencil_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure import stencil as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import text

    source = parse_far_rows(far_rows)
    if split_only:
        _check_split_only(predicts=source is None, csv=csv)
    split = read_split(source, context) if isinstance(source, Path) else None
    wanted = None if isinstance(source, Path) else source
    if split:
        rows, cols, near, far = split.rows, split.cols, split.near, split.far
        kernel, version = Kernel(split.kernel), options.StencilVersion(split.version)
        near_threads, far_threads = split.near_threads, split.far_threads
        wanted = split.far_rows
    budget_s = shared.budget_s(20.0)
    arguments = {
        "kernel": kernel.value, "rows": rows, "cols": cols, "far_rows": far_rows,
        "version": version.value, "near": near, "far": far, "time_s": budget_s,
    }  # fmt: skip
    with recorded("bench stencil", arguments, shared.kept) as recording:
        plan = stencil_plan(
            recording, kernel.value, (rows, cols, wanted), version.value, (near, far),
            (near_threads, far_threads), cpus=shared.cpus, seed=shared.seed,
            beside_alone=split is not None or wanted is None,
        )  # fmt: skip
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
        recording.show(text.stencil_split(split), recording.document(split), shared.json)
        return
    if csv:
        _write_row(csv, result)
    recording.show(text.stencil(result), recording.document(result), shared.json)


def _check_split_only(*, predicts: bool, csv: Path | None) -> None:
    if not predicts:
        raise BadInputError("--split-only has nothing to predict", "give --far-rows auto")
    if csv:
        raise BadInputError("--split-only measures no row for --csv", "leave one of them out")


def _split(
    recording: Recording, plan: StencilPlan, effort: Effort, cache: int
) -> tuple[StencilPlan, StencilSplit]:
    """Predict the split, keep it, and plan the run with it."""
    from nearfar.cli.far_rows import predict_split

    split = predict_split(recording.session, plan, effort, cache)
    recording.keep("stencil_split", split, [])
    plan = replace(plan, far_rows=split.far_rows)
    plan.check_room()
    return plan, split


def _check_row(csv: Path | None, plan: StencilPlan, *, open_split: bool) -> None:
    """Refuse to write a row that nothing can be calibrated with."""
    one_side = not open_split and not 0 < plan.far_rows < plan.rows
    if csv and (plan.teams.oversubscribed or one_side or plan.kernel != "stencil8"):
        raise BadInputError(
            "such a row calibrates no split: both sides need rows, and threads processors",
            "use fewer threads, another --far-rows and stencil8, or leave --csv out",
        )


def _write_row(path: Path, r: StencilResult) -> None:
    from nearfar.cli.console import write_table

    write_table(
        path,
        ["rows", "cols", "far_rows", "near_threads", "far_threads", "near_s", "far_s", "total_s"],
        [[
            r.rows, r.cols, r.far_rows, r.near_threads, r.far_threads,
            *(f"{seconds:.6g}" for seconds in (r.near_time_s, r.far_time_s, r.total_time_s)),
        ]],
    )  # fmt: skip
