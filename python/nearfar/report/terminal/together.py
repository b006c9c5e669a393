"""Tables of near and far memory in concurrent use."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.figures import FigureModel
from nearfar.records.forecasts import CompeteForecasts, PipelineForecast, PublishedError
from nearfar.records.together import (
    CompeteDrop,
    CompeteResult,
    PipelineResult,
    StencilResult,
    StencilSplit,
)
from nearfar.report.html.sections import _forecasts
from nearfar.report.html.sections import compete as compete_section
from nearfar.report.html.sections import pipeline as pipeline_section
from nearfar.report.html.sections import stencil as stencil_section
from nearfar.report.terminal.layout import block, columns
from nearfar.report.wording import format_quantity, interval_of, origins
from nearfar.units import format_time

_NEAR, _FAR = "near_bandwidth_bytes_per_s", "far_bandwidth_bytes_per_s"
#: Most drops listed in a terminal; the record has all.
MAX_DROPS = 12


def compete(result: CompeteResult) -> RenderableType:
    """Return the rates of both sides, one row per split, and the deepest drops."""
    rows = [
        [compete_section.threads_of(row), *(_with_interval(row, key) for key in (_NEAR, _FAR))]
        for row in result.rows
    ]
    parts: list[RenderableType] = [columns(["Near + far threads", "Near", "Far"], rows, 1)]
    listed = compete_section.deepest(result, MAX_DROPS)
    if listed:
        parts += [Text(""), _drops(listed)]
    if result.forecast:
        compared = _forecasts.of_competition(result)
        parts += _predicted_first(compete_section.COMPARED_HEADS, compared)
        parts += _published(result.forecast.published)
    found = origins((row, key) for row in result.rows for key in (_NEAR, _FAR))
    return block(
        "Competition",
        compete_section.finding(result),
        found,
        Group(*parts),
        compete_section.notes(result, MAX_DROPS),
    )


def compete_forecast(forecast: CompeteForecasts) -> RenderableType:
    """Return the predicted rates of both sides, one row per split that was not run."""
    rows = [
        [
            f"{row.near_threads} + {row.far_threads}",
            *(_with_interval(row, key) for key in (_NEAR, _FAR)),
        ]
        for row in forecast.rows
    ]
    return block(
        "Predicted competition",
        f"With {forecast.near} near and {forecast.far} far: predicted from copies of each side.",
        origins((row, key) for row in forecast.rows for key in (_NEAR, _FAR)),
        Group(
            columns(["Near + far threads", "Near", "Far"], rows, 1),
            *_published(forecast.published),
        ),
        [compete_section.forecast_note(row) for row in forecast.rows],
    )


def _drops(listed: Sequence[CompeteDrop]) -> RenderableType:
    """Return the drops, with what the kernel reports about each."""
    heads = ["Thread", "Depth", "Length", "Every", "Off CPU"]
    heads += ["Steal", "Switches", "Faults", "Cause"]
    rows = [
        [
            f"{drop.side} {drop.cpu}",
            f"{drop.depth:.0%}",
            format_time(drop.length_s),
            format_time(drop.period_s) if drop.period_s else "–",
            format_quantity("off_cpu_s", drop.off_cpu_s),
            format_quantity("steal_s", drop.steal_s),
            str(drop.involuntary_switches),
            str(drop.minor_faults + drop.major_faults),
            drop.cause,
        ]
        for drop in listed
    ]
    return columns(heads, rows, 1)


def stencil(result: StencilResult) -> RenderableType:
    """Return the time of one sweep, one row per side."""
    rows = [
        [
            name,
            str(count),
            threads,
            _with_interval(result, time),
            _with_interval(result, rate) if rate else "–",
        ]
        for name, count, threads, time, rate in stencil_section.sides(result)
    ]
    heads = ["Side", "Rows", "Threads", "One sweep", "Rate"]
    if result.split:
        heads += ["Predicted", "Error"]
        for row, (_, _, _, time, _) in zip(rows, stencil_section.sides(result), strict=True):
            row += _predicted(result, result.split, time)
    table = columns(heads, rows, 1)
    found = origins([(result, "total_time_s")])
    below = _published(result.split.published) if result.split else []
    return block(
        "Shared stencil",
        stencil_section.finding(result),
        found,
        Group(table, *below),
        stencil_section.notes(result),
    )


def _predicted(result: StencilResult, split: StencilSplit, time: str) -> list[str]:
    if time not in stencil_section.PREDICTED:
        return ["–", "–"]
    return [
        format_quantity(time, getattr(split, time)),
        stencil_section.error_of(result, split, time),
    ]


def stencil_split(split: StencilSplit) -> RenderableType:
    """Return a predicted split."""
    rows = [
        [side, str(count), str(threads), _with_interval(split, key)]
        for side, count, threads, key in (
            ("near", split.rows - split.far_rows, split.near_threads, "near_time_s"),
            ("far", split.far_rows, split.far_threads, "far_time_s"),
            ("whole", split.rows, split.near_threads + split.far_threads, "total_time_s"),
        )
    ]
    table = columns(["Side", "Rows", "Threads", "One sweep"], rows, 1)
    return block(
        "Split of a stencil",
        stencil_section.split_finding(split),
        origins([(split, "total_time_s")]),
        Group(table, *_published(split.published)),
        stencil_section.split_notes(split),
    )


def pipeline_run(result: PipelineResult) -> RenderableType:
    """Return the measured stages of both sides."""
    rows = [
        [side, stage, _with_interval(result, key)]
        for side, stage, key in pipeline_section.stages(result)
    ]
    parts: list[RenderableType] = [columns(["Side", "Stage", "All iterations"], rows, 2)]
    if result.forecast:
        compared = _forecasts.of_pipeline(result)
        parts += _predicted_first(pipeline_section.COMPARED_HEADS, compared)
        parts += _published(result.forecast.published)
    return block(
        "Pipeline",
        pipeline_section.finding(result),
        origins([(result, "total_time_s")]),
        Group(*parts),
        pipeline_section.notes(result),
    )


def pipeline_forecast(forecast: PipelineForecast) -> RenderableType:
    """Return the predicted stages of a pipeline that was not run."""
    rows = [
        [name, _with_interval(forecast, key)] for name, key in _forecasts.PIPELINE_FIGURES.items()
    ]
    return block(
        "Predicted pipeline",
        f"With {forecast.near} near and {forecast.far} far: predicted from stages of each side.",
        origins([(forecast, "total_time_s")]),
        Group(columns(["Stage", "All iterations"], rows, 1), *_published(forecast.published)),
        [pipeline_section.forecast_note(forecast)],
    )


def _predicted_first(
    heads: Sequence[str], compared: Sequence[_forecasts.Compared]
) -> list[RenderableType]:
    """Return predictions made before the run, and the measured figures."""
    rows = [
        [
            *each.labels,
            _with_interval(each.predicted, each.key),
            _with_interval(each.measured, each.key),
            each.error_text(),
        ]
        for each in compared
    ]
    return [Text(""), columns([*heads, *_forecasts.HEADS], rows, len(heads))]


def _published(published: Sequence[PublishedError]) -> list[RenderableType]:
    """Return errors of the same models against published tables, if there are any."""
    rows = _forecasts.published_rows(published)
    caption = Text(f"{_forecasts.PUBLISHED_CAPTION}.")
    return [Text(""), caption, columns(_forecasts.PUBLISHED_HEADS, rows, 2)] if rows else []


def _with_interval(result: FigureModel, key: str) -> str:
    """Return text as in other tables; the head gives the origin of all rows."""
    interval = interval_of(result, key)
    text = format_quantity(key, float(getattr(result, key)))
    return f"{text}  ({interval})" if interval else text
