"""Predictions before a measurement, from measurements of each side alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from nearfar import store

if TYPE_CHECKING:
    from nearfar.measure.compete import CompetePlan
    from nearfar.measure.compete_alone import AloneEstimates
    from nearfar.measure.pipeline import PipelinePlan
    from nearfar.measure.pipeline_alone import Point
    from nearfar.measure.session import Effort, Session
    from nearfar.model import pipeline_here
    from nearfar.records.figures import FigureModel
    from nearfar.records.forecasts import CompeteForecast, CompeteForecasts, PipelineForecast
    from nearfar.stats import Estimate
    from nearfar.workflows.recording import Recording

#: Calibration level of predictions from each side alone, and its text.
_COPIES_ALONE = (1, "1: copies of each side alone measured here; no row of both")
_STAGES_ALONE = (1, "1: stages of each side alone measured here; no run of both")

Kept = TypeVar("Kept", bound="FigureModel")
#: Picks the value of an estimate, or one end of its range.
Pick = Callable[["Estimate"], float]
_VALUE: Pick = attrgetter("value")
_LOW: Pick = attrgetter("low")
_HIGH: Pick = attrgetter("high")


def before_run(
    recording: Recording, section: str, predict: Callable[[], Kept | None]
) -> Kept | None:
    """A prediction that is saved before the run; if it fails, the run goes on with a note."""
    from nearfar._native import NativeError
    from nearfar.errors import MachineError, from_native
    from nearfar.records.run import Skipped

    try:
        forecast = predict()
    except (MachineError, NativeError) as failure:
        error = failure if isinstance(failure, MachineError) else from_native(failure)
        skipped = Skipped(section=section, what="the prediction", why=error.what)
        recording.directory.run.skipped.append(skipped)
        recording.session.progress.note(f"skipped {section}: the prediction ({error.what})")
        return None
    if forecast:
        recording.keep(f"{section}_forecast", forecast, [])
    return forecast


def predict_compete(session: Session, plan: CompetePlan, effort: Effort) -> CompeteForecasts | None:
    """Measure each side alone and predict both at once.

    None if no split has a CPU for each thread. Each side is also measured with the threads of both
    sides: raises MachineError if the arrays of that many near threads do not fit.
    """
    from nearfar.measure import compete_alone
    from nearfar.model import published
    from nearfar.records.forecasts import CompeteForecasts

    splits = [split for split in plan.splits if not plan.teams(split).oversubscribed]
    if not splits:
        return None
    measured = compete_alone.measure(session, plan, splits, effort)
    return CompeteForecasts(
        mode=plan.mode,
        near=plan.near,
        far=plan.far,
        rows=[_compete_row(session, plan, split, measured[split]) for split in splits],
        published=list(published.of_competition()),
    )


def _compete_row(
    session: Session, plan: CompetePlan, split: tuple[int, int], alone: AloneEstimates
) -> CompeteForecast:
    from nearfar.records.forecasts import CompeteForecast

    return CompeteForecast(
        **_with_predicted(
            session.figures(
                plan.near,
                plan.far,
                near_alone_bandwidth_bytes_per_s=alone.near,
                far_alone_bandwidth_bytes_per_s=alone.far,
                together_bandwidth_bytes_per_s=alone.together,
            ),
            _rates_of_both(plan, split, alone),
            samples=alone.near.samples,
        ),
        near_threads=split[0],
        far_threads=split[1],
        calibration_level=_COPIES_ALONE[0],
        calibration=_COPIES_ALONE[1],
        predicted_on=store.now(),
    )


def _rates_of_both(
    plan: CompetePlan, split: tuple[int, int], alone: AloneEstimates
) -> dict[str, tuple[float, float, float]]:
    """Bandwidth of each side and their sum, each with its ends."""
    from nearfar._native import parse_tier
    from nearfar.model import sharing

    # A far memory on another node has its own channels.
    shared = parse_tier(plan.far)["node"] < 0 or plan.far == plan.near

    def at(near: Pick, far: Pick, together: Pick) -> sharing.Alone:
        known = sharing.Alone(near(alone.near), far(alone.far), together(alone.together))
        return sharing.at_once(known, *split, shared=shared)

    # A side is slowest where its own bandwidth is low and the other side's is high.
    both = at(_VALUE, _VALUE, _VALUE)
    slow, fast = at(_LOW, _LOW, _LOW), at(_HIGH, _HIGH, _HIGH)
    near = at(_LOW, _HIGH, _LOW).near, at(_HIGH, _LOW, _HIGH).near
    far = at(_HIGH, _LOW, _LOW).far, at(_LOW, _HIGH, _HIGH).far
    return {
        "near_bandwidth_bytes_per_s": (both.near, *near),
        "far_bandwidth_bytes_per_s": (both.far, *far),
        "sum_bandwidth_bytes_per_s": (both.together, slow.together, fast.together),
    }


def _with_predicted(
    measured: dict[str, Any], predicted: dict[str, tuple[float, float, float]], *, samples: int
) -> dict[str, Any]:
    """Keyword arguments of a forecast: measured inputs and predictions, with their ends."""
    from nearfar.model.results import modelled

    ends = {
        key: (value, min(value, low, high), max(value, low, high))
        for key, (value, low, high) in predicted.items()
    }
    found = modelled(ends, samples=samples)
    for part in ("intervals", "provenance"):
        found[part] = measured[part] | found[part]
    return measured | found


def predict_pipeline(
    session: Session, plan: PipelinePlan, effort: Effort
) -> PipelineForecast | None:
    """Measure the stages alone and predict the pipeline.

    None for near threads alone, shared CPUs, and vectors too short to time their copy.
    """
    from nearfar.measure import pipeline_alone

    teams = plan.teams
    if plan.near_only or teams.oversubscribed or not pipeline_alone.can_be_timed(plan):
        return None
    measured = pipeline_alone.measure(session, plan, effort)
    return _pipeline(session, plan, measured)


def _pipeline(
    session: Session, plan: PipelinePlan, measured: Mapping[Point, Estimate]
) -> PipelineForecast:
    from nearfar.model import published
    from nearfar.records.forecasts import PipelineForecast

    near, far = plan.teams.near_threads, plan.teams.far_threads
    return PipelineForecast(
        **_with_predicted(
            session.figures(
                plan.near,
                plan.far,
                generate_alone_time_s=measured["generate", near],
                analyse_alone_time_s=measured["analyse", far],
                near_copy_bandwidth_bytes_per_s=measured["copy", near + far],
                transfer_bandwidth_bytes_per_s=measured["transfer", far],
                far_read_bandwidth_bytes_per_s=measured["read", far],
            ),
            _stage_times(plan, measured),
            samples=measured["generate", near].samples,
        ),
        near=plan.near,
        far=plan.far,
        near_threads=near,
        far_threads=far,
        calibration_level=_STAGES_ALONE[0],
        calibration=_STAGES_ALONE[1],
        predicted_on=store.now(),
        published=list(published.of_pipeline()),
    )


def _stage_times(
    plan: PipelinePlan, measured: Mapping[Point, Estimate]
) -> dict[str, tuple[float, float, float]]:
    """Time of each stage, and its ends."""
    from nearfar.model import pipeline_here

    near, far = plan.teams.near_threads, plan.teams.far_threads
    # Worst case: the analysis also waits for each load of far memory.
    times = pipeline_here.predict(_alone(plan, measured, _VALUE, _VALUE), near, far)
    best = pipeline_here.predict(_alone(plan, measured, _LOW, _HIGH), near, far)
    worst = pipeline_here.predict(_alone(plan, measured, _HIGH, _LOW), near, far, waits=True)
    return {
        f"{stage}_time_s": (getattr(times, stage), getattr(best, stage), getattr(worst, stage))
        for stage in ("generate", "transfer", "analyse", "total")
    }


def _alone(
    plan: PipelinePlan, measured: Mapping[Point, Estimate], time: Pick, speed: Pick
) -> pipeline_here.Alone:
    """Inputs of the model, with times at one end of their ranges and speeds at the other."""
    from nearfar.model import pipeline_here
    from nearfar.model.curves import Curve
    from nearfar.model.pipeline import Work

    def curve(figure: str, pick: Pick) -> Curve:
        points = {n: pick(estimate) for (name, n), estimate in measured.items() if name == figure}
        return Curve(f"{figure} alone", points)

    far = plan.teams.far_threads
    return pipeline_here.Alone(
        curve("generate", time),
        curve("analyse", time),
        curve("copy", speed),
        speed(measured["transfer", far]),
        speed(measured["read", far]),
        Work(plan.elements, plan.iterations),
    )
