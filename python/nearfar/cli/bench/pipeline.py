"""``nearfar bench pipeline``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.together import PipelineResult


@flags.grouped
def pipeline(
    near: flags.Near = "dram",
    far: flags.Far = "shm:",
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    near_only: Annotated[
        bool,
        typer.Option(
            "--near-only", help="Generate and analyze with near threads alone, for comparison."
        ),
    ] = False,
    elements: Annotated[
        int | None,
        typer.Option(
            "--elements",
            metavar="N",
            min=1,
            max=ranges.MOST_COUNT,
            help="Elements of a vector (16,000,000).",
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations",
            metavar="N",
            min=1,
            max=ranges.MOST_COUNT,
            help="Vectors to generate (5,000).",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run 1,000,000 elements and 50 iterations.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Write the row in the form that `nearfar predict pipeline` reads.",
            callback=flags.writable,
        ),
    ] = None,
    *,
    shared: flags.Measuring,
) -> None:
    """Measure a pipeline: near threads generate while far threads copy and analyze the last result.

    Near threads multiply a vector by a sparse matrix repeatedly, with damping. Far threads copy
    each finished vector to far memory and read it there five times. A vector is not overwritten
    before its copy is complete. Times are totals of all iterations, with waiting reported
    separately. The results of the first 50 iterations must equal those of near threads alone, bit
    for bit. The full size runs once, for minutes, unless --runs or --time is given.

    Before the run, each stage is timed alone. A model predicts the times from that, and the result
    shows the prediction error.

    Examples:

        nearfar bench pipeline --quick

        nearfar bench pipeline --far numa:1 --near-threads 6 --far-threads 2 --csv cal.csv

        nearfar bench pipeline --near-only --near-threads 8 --elements 1000000 --iterations 100
    """
    from nearfar.measure import pipeline as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows.forecasts import before_run, predict_pipeline
    from nearfar.workflows.plans import last_cache, pipeline_plan
    from nearfar.workflows.recording import recorded

    if near_only and far_threads:
        raise BadInputError("--near-only uses no far threads", "leave --far-threads out")
    vector = elements or (measurement.QUICK_ELEMENTS if quick else measurement.ELEMENTS)
    rounds = iterations or (measurement.QUICK_ITERATIONS if quick else measurement.ITERATIONS)
    arguments = {
        "near": near,
        "far": far,
        "elements": vector,
        "iterations": rounds,
        "near_only": near_only,
    }
    with recorded("bench pipeline", arguments, shared.kept) as recording:
        plan = pipeline_plan(
            recording,
            (vector, rounds),
            (near, far),
            (near_threads, 0 if near_only else far_threads),
            cpus=shared.cpus,
            seed=shared.seed,
        )
        if csv and plan.teams.oversubscribed:
            raise BadInputError(
                "threads share CPUs: such times cannot calibrate a model",
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
    recording.show(terminal.pipeline_run(result), recording.document(result), shared.json)


def _write_row(path: Path, r: PipelineResult) -> None:
    """Write the columns of the published tables: for near threads alone, or for both sides."""
    from nearfar.report.console import write_table

    def cells(*times: float | None) -> list[str]:
        return [f"{seconds:.6g}" for seconds in times if seconds is not None]

    if r.far_threads == 0:
        row = [str(r.near_threads), *cells(r.total_time_s, r.generate_time_s, r.analyse_time_s)]
        write_table(path, ["threads", "total_s", "generate_s", "analyse_s"], [row])
        return
    heads = [
        "near_threads",
        "far_threads",
        "generate_s",
        "generate_idle_s",
        "transfer_s",
        "analyse_s",
        "transfer_idle_s",
        "total_s",
    ]
    times = cells(
        r.generate_time_s,
        r.generate_idle_time_s,
        r.transfer_time_s,
        r.analyse_time_s,
        r.transfer_idle_time_s,
        r.total_time_s,
    )
    write_table(path, heads, [[str(r.near_threads), str(r.far_threads), *times]])
