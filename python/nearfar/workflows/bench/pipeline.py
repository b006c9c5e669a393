"""Generation in near memory and analysis in far memory, predicted and measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.files import write_table
from nearfar.measure import pipeline
from nearfar.model.pipeline import CALIBRATION_COLUMNS
from nearfar.workflows import forecasting
from nearfar.workflows.plans import last_cache, pipeline_plan
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.records.together import PipelineResult
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Recording


@dataclass(frozen=True)
class Work:
    """Tiers, threads, elements of a vector, and vectors to generate."""

    near: str = "dram"
    far: str = "shm:"
    near_threads: int | None = None
    far_threads: int | None = None
    near_only: bool = False
    elements: int | None = None
    iterations: int | None = None
    quick: bool = False

    @property
    def vector(self) -> int:
        """Elements of a vector."""
        return self.elements or (pipeline.QUICK_ELEMENTS if self.quick else pipeline.ELEMENTS)

    @property
    def rounds(self) -> int:
        """Vectors to generate."""
        own = pipeline.QUICK_ITERATIONS if self.quick else pipeline.ITERATIONS
        return self.iterations or own


def measure(work: Work, options: Options, *, csv: Path | None = None) -> Measured[PipelineResult]:
    """Measure; ``csv`` is a file for the row that ``nearfar predict pipeline`` reads."""
    if work.near_only and work.far_threads:
        raise BadInputError("--near-only uses no far threads", "leave --far-threads out")
    arguments = {
        "near": work.near,
        "far": work.far,
        "elements": work.vector,
        "iterations": work.rounds,
        "near_only": work.near_only,
    }
    with recorded("bench pipeline", arguments, options, "pipeline") as recording:
        result = _run(recording, work, options, feeds_model=csv is not None)
        recording.keep("pipeline", result)
    if csv:
        _write_row(csv, result)
    return recording.measured(result)


def _run(
    recording: Recording, work: Work, options: Options, *, feeds_model: bool
) -> PipelineResult:
    plan = pipeline_plan(recording, work, options)
    if feeds_model and plan.teams.oversubscribed:
        raise BadInputError(
            "threads share CPUs: such times cannot calibrate a model",
            "use fewer threads, or leave --csv out",
        )
    if options.time_s is not None and work.iterations is None and not work.quick:
        plan = plan.fitted(options.time_s)
    cache = last_cache(recording, plan.teams.cpus[0])
    effort = options.effort(20.0)
    once = options.runs is None and options.time_s is None and not work.quick
    prediction = forecasting.before_run(
        recording, "pipeline", lambda: forecasting.predict_pipeline(recording.session, plan, effort)
    )
    measured = replace(effort, epochs=1) if once else effort
    return pipeline.measure(recording.session, plan, measured, cache, prediction)


def _write_row(path: Path, r: PipelineResult) -> None:
    """Write the columns of the published tables: for near threads alone, or for both sides."""

    def cells(*times: float | None) -> list[str]:
        return [f"{seconds:.6g}" for seconds in times if seconds is not None]

    if r.far_threads == 0:
        row = [str(r.near_threads), *cells(r.total_time_s, r.generate_time_s, r.analyse_time_s)]
        write_table(path, ["threads", "total_s", "generate_s", "analyse_s"], [row])
        return
    times = cells(
        r.generate_time_s,
        r.generate_idle_time_s,
        r.transfer_time_s,
        r.analyse_time_s,
        r.transfer_idle_time_s,
        r.total_time_s,
    )
    write_table(path, CALIBRATION_COLUMNS, [[str(r.near_threads), str(r.far_threads), *times]])
