"""``nearfar bench stencil``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.together import StencilResult


class Version(StrEnum):
    """How rows on the other side are reached."""

    DIRECT = "direct"
    GHOST = "ghost"


def stencil(
    far_rows: Annotated[
        int, typer.Option("--far-rows", metavar="R", min=0, help="Rows on the far side.")
    ],
    near: options.Near = "dram",
    far: options.Far = "shm:",
    rows: Annotated[int, typer.Option("--rows", metavar="M", min=1)] = 8192,
    cols: Annotated[int, typer.Option("--cols", metavar="N", min=1)] = 8192,
    version: Annotated[
        Version, typer.Option("--version", help="Border rows read across, or kept twice.")
    ] = Version.DIRECT,
    near_threads: options.MaybeNearThreads = None,
    far_threads: options.MaybeFarThreads = None,
    cpus: options.Cpus = None,
    time: options.Time = None,
    runs: options.Runs = None,
    warmup: options.Warmup = 0,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="As `nearfar split --calibrate` takes it."),
    ] = None,
    seed: options.Seed = 1,
    out: options.Out = None,
    json: options.Json = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
) -> None:
    """A stencil over an array whose rows near and far memory share.

    The mean of the eight neighbours of each element, ten sweeps, two arrays that change places.
    The last R rows lie far and are worked on by far threads, the others near. Times are those of
    one sweep: the slowest near thread, the slowest far thread, and the whole. Every repeat must
    leave the same bits as a plain serial sweep.

    Examples:

        nearfar bench stencil --far-rows 2048

        nearfar bench stencil --far fsdax:/mnt/pmem --far-rows 750 --version ghost --far-threads 2
    """
    from nearfar.cli.plans import last_cache, stencil_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure import stencil as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import text
    from nearfar.units import parse_seconds

    budget_s = parse_seconds(time) if time else 20.0
    arguments = {
        "rows": rows, "cols": cols, "far_rows": far_rows, "version": version.value, "near": near,
        "far": far, "time_s": budget_s,
    }  # fmt: skip
    with recorded(
        "bench stencil", arguments, seed=seed, out=out, quiet=quiet, strict=strict
    ) as recording:
        plan = stencil_plan(
            recording, (rows, cols, far_rows), version.value, (near, far),
            (near_threads, far_threads), cpus=cpus, seed=seed,
        )  # fmt: skip
        if csv and (plan.teams.oversubscribed or not 0 < far_rows < rows):
            raise BadInputError(
                "such a row calibrates no split: both sides need rows, and threads processors",
                "use fewer threads and another --far-rows, or leave --csv out",
            )
        cache = last_cache(recording, plan.teams.cpus[0])
        effort = Effort(budget_s, runs, warmup)
        result = measurement.measure(recording.session, plan, effort, cache)
        recording.keep("stencil", result, [])
    if csv:
        _write_row(csv, result)
    recording.show(text.stencil(result), recording.document(result), json)


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
