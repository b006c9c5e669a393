"""``nearfar bench pipeline``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.together import PipelineResult


@options.grouped
def pipeline(
    near: options.Near = "dram",
    far: options.Far = "shm:",
    near_threads: options.MaybeNearThreads = None,
    far_threads: options.MaybeFarThreads = None,
    near_only: Annotated[
        bool,
        typer.Option(
            "--near-only", help="Near threads generate and analyse in turns, for comparison."
        ),
    ] = False,
    elements: Annotated[
        int | None,
        typer.Option("--elements", metavar="N", min=1, help="Of a vector (16,000,000)."),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", metavar="N", min=1, help="Vectors to generate (5,000)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="1,000,000 elements and 50 iterations.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="As `nearfar predict pipeline` takes it.",
            callback=options.writable,
        ),
    ] = None,
    *,
    shared: options.Measuring,
) -> None:
    """Near threads generate while far threads copy the last result and analyse it.

    A vector is multiplied by a sparse matrix again and again, with damping. Far threads copy each
    finished vector to far memory and read it there five times; the generator may not write over a
    vector before its copy is done. Times are those of all iterations, waiting told apart. What
    the first 50 iterations find is compared to the bit with near threads alone. The full size runs
    once, for minutes, unless --runs or --time says otherwise.

    Before it runs, each stage is timed alone; from that the times are predicted, and shown with
    their error.

    Examples:

        nearfar bench pipeline --quick

        nearfar bench pipeline --far numa:1 --near-threads 6 --far-threads 2 --csv cal.csv

        nearfar bench pipeline --near-only --near-threads 8 --elements 1000000 --iterations 100
    """
    from nearfar.cli.forecasts import before_run, predict_pipeline
    from nearfar.cli.plans import last_cache, pipeline_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure import pipeline as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import text

    if near_only and far_threads:
        raise BadInputError("--near-only has no far threads", "leave --far-threads out")
    vector = elements or (measurement.QUICK_ELEMENTS if quick else measurement.ELEMENTS)
    rounds = iterations or (measurement.QUICK_ITERATIONS if quick else measurement.ITERATIONS)
    arguments = {
        "near": near, "far": far, "elements": vector, "iterations": rounds, "near_only": near_only,
    }  # fmt: skip
    with recorded("bench pipeline", arguments, shared.kept) as recording:
        plan = pipeline_plan(
            recording, (vector, rounds), (near, far),
            (near_threads, 0 if near_only else far_threads), cpus=shared.cpus, seed=shared.seed,
        )  # fmt: skip
        if csv and plan.teams.oversubscribed:
            raise BadInputError(
                "threads share processors: such times calibrate nothing",
                "use fewer threads, or leave --csv out",
            )
        cache = last_cache(recording, plan.teams.cpus[0])
        once = shared.runs is None and shared.time is None and not quick
        effort = Effort(shared.budget_s(20.0), 1 if once else shared.runs, shared.warmup)
        each = replace(effort, epochs=shared.runs)
        forecast = before_run(
            recording, "pipeline", lambda: predict_pipeline(recording.session, plan, each)
        )
        result = measurement.measure(recording.session, plan, effort, cache, forecast)
        recording.keep("pipeline", result, [])
    if csv:
        _write_row(csv, result)
    recording.show(text.pipeline_run(result), recording.document(result), shared.json)


def _write_row(path: Path, r: PipelineResult) -> None:
    """The columns of the published tables: of near threads alone, or of both sides."""
    from nearfar.cli.console import write_table

    def cells(*times: float | None) -> list[str]:
        return [f"{seconds:.6g}" for seconds in times if seconds is not None]

    if r.far_threads == 0:
        row = [str(r.near_threads), *cells(r.total_time_s, r.generate_time_s, r.analyse_time_s)]
        write_table(path, ["threads", "total_s", "generate_s", "analyse_s"], [row])
        return
    heads = ["near_threads", "far_threads", "generate_s", "generate_idle_s", "transfer_s",
             "analyse_s", "transfer_idle_s", "total_s"]  # fmt: skip
    times = cells(
        r.generate_time_s, r.generate_idle_time_s, r.transfer_time_s, r.analyse_time_s,
        r.transfer_idle_time_s, r.total_time_s,
    )  # fmt: skip
    write_table(path, heads, [[str(r.near_threads), str(r.far_threads), *times]])
