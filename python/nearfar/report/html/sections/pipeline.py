"""Pipeline: near threads generate while far threads copy and analyze."""

from __future__ import annotations

from nearfar.records.forecasts import PipelineForecast
from nearfar.records.together import PipelineResult
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.html.sections import _forecasts
from nearfar.report.html.sections._threads import IN_CACHE
from nearfar.report.wording import count, format_quantity, origin_mark, origins, say

_TOTAL = "total_time_s"
COMPARED_HEADS = ("Stage",)
COMPARED_CAPTION = "Predicted from each stage alone, then measured"
#: Side, stage, key.
_STAGES = (
    ("near", "generation", "generate_time_s"),
    ("near", "waiting for the copy", "generate_idle_time_s"),
    ("far", "waiting for a vector", "transfer_idle_time_s"),
    ("far", "transfer", "transfer_time_s"),
    ("far", "analysis", "analyse_time_s"),
)


def section(context: Context) -> Section | None:
    """Return the section, or None if no pipeline ran."""
    result = context.run.sections.pipeline
    if result is None:
        return None
    rows = [
        [Cell(side), Cell(stage), figure_cell(result, key)] for side, stage, key in stages(result)
    ]
    table = Table(["Side", "Stage", "Time"], rows, "Times of all iterations", frozenset({2}))
    return Section(
        "pipeline",
        "Pipeline over two memories",
        finding(result),
        _figures(result),
        [table, *_predicted(result)],
        notes(result),
    )


def _predicted(result: PipelineResult) -> list[Table]:
    """Return predictions and their errors, then errors against published tables."""
    if result.forecast is None:
        return []
    compared = _forecasts.of_pipeline(result)
    return [
        _forecasts.table(COMPARED_HEADS, compared, COMPARED_CAPTION),
        *_forecasts.published_table(result.forecast.published),
    ]


def finding(result: PipelineResult) -> str:
    """State the total time, and the fraction of it that each side waited."""
    text = (
        f"{result.iterations} vectors of {result.elements} elements took {say(result, _TOTAL)} "
        f"with {count(result.near_threads, 'near thread')}"
    )
    if result.far is None:
        return f"{text} that did everything in turns."
    text += f" and {count(result.far_threads, 'far thread')} on {result.far}"
    near = (result.generate_idle_time_s or 0.0) / result.total_time_s
    far = (result.transfer_idle_time_s or 0.0) / result.total_time_s
    text += f"; near threads waited {near:.0%} of it, far threads {far:.0%}"
    if result.errors:
        text += f"; the prediction is off by {_forecasts.signed_error(result.errors, _TOTAL)}"
    return f"{text}."


def stages(result: PipelineResult) -> list[tuple[str, str, str]]:
    """Return side, stage and key of each time in the record, the total last."""
    found = [
        ("near" if result.far is None else side, stage, key)
        for side, stage, key in _STAGES
        if getattr(result, key) is not None
    ]
    return [*found, ("", "whole", _TOTAL)]


def _figure(result: PipelineResult) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    bars = [
        Bar(
            f"{side} {stage}".strip() + origin_mark(result, key),
            side or "whole",
            *result.estimate(key),
            format_quantity(key, getattr(result, key)),
        )
        for side, stage, key in stages(result)
    ]
    chart = row_chart(bars, "time of all iterations (s)")
    found = origins([(result, _TOTAL)])
    return draw("Where the time went.", chart, height=26 * len(bars), origins=found)


def _figures(result: PipelineResult) -> list[Figure]:
    """Return the timeline, if the record has one, and the sums."""
    return [*([_timeline(result)] if result.timeline else []), _figure(result)]


def _timeline(result: PipelineResult) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.series import Span, timeline_chart

    spans = [
        Span(
            f"near {stage}" if result.far is None else f"{lap.side} {stage}",
            lap.side,
            lap.start_s * 1e3,
            lap.end_s * 1e3,
        )
        for side, stage, key in _STAGES
        for lap in result.timeline
        if key == f"{lap.stage}_time_s" and (result.far is None or lap.side == side)
    ]
    lanes = len({span.lane for span in spans})
    caption = "Activity of each side in the first iterations of the first repeat."
    found = origins([(result, _TOTAL)])
    return draw(caption, timeline_chart(spans, "time (ms)"), height=26 * lanes, origins=found)


def notes(result: PipelineResult) -> list[str]:
    """State the result check, and the limits of the figures."""
    lines = [
        f"The results of the first {count(result.compared_iterations, 'iteration')} of every "
        "repeat "
        "equal those of one near thread alone, bit for bit."
    ]
    if result.forecast:
        lines.append(forecast_note(result.forecast))
    if result.oversubscribed:
        lines.append("Threads shared CPUs: such times are not used in fits.")
    return [*lines, IN_CACHE] if result.in_cache else lines


def forecast_note(forecast: PipelineForecast) -> str:
    """State the basis of a prediction."""
    generate, analyse, copy, transfer, read = (
        say(forecast, key)
        for key in (
            "generate_alone_time_s",
            "analyse_alone_time_s",
            "near_copy_bandwidth_bytes_per_s",
            "transfer_bandwidth_bytes_per_s",
            "far_read_bandwidth_bytes_per_s",
        )
    )
    return (
        f"Predicted on {forecast.predicted_on} from what was measured alone: generation {generate},"
        f" analysis of near memory {analyse}, near copies with all threads {copy}, copies to far "
        f"memory {transfer}, reads of it {read}. Calibration {forecast.calibration}."
    )
