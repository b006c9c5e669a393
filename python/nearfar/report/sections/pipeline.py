"""Near threads generate while far threads copy and analyse."""

from __future__ import annotations

from nearfar.records.together import PipelineResult
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.sections._threads import IN_CACHE
from nearfar.report.wording import count, format_quantity, origin_mark, origins, say

_TOTAL = "total_time_s"
#: Side, stage, key.
_STAGES = (
    ("near", "generation", "generate_time_s"),
    ("near", "waiting for the copy", "generate_idle_time_s"),
    ("far", "waiting for a vector", "transfer_idle_time_s"),
    ("far", "transfer", "transfer_time_s"),
    ("far", "analysis", "analyse_time_s"),
)


def section(context: Context) -> Section | None:
    """The section, or None where no pipeline ran."""
    result = context.run.sections.pipeline
    if result is None:
        return None
    rows = [
        [Cell(side), Cell(stage), figure_cell(result, key)] for side, stage, key in stages(result)
    ]
    table = Table(["Side", "Stage", "Time"], rows, "Times of all iterations", frozenset({2}))
    return Section("pipeline", "Pipeline over two memories", finding(result), [_figure(result)],
                   [table], notes(result))  # fmt: skip


def finding(result: PipelineResult) -> str:
    """The whole, and how much of it each side waited."""
    text = (
        f"{result.iterations} vectors of {result.elements} elements took {say(result, _TOTAL)} "
        f"with {count(result.near_threads, 'near thread')}"
    )
    if result.far is None:
        return f"{text} that did all, in turns."
    text += f" and {count(result.far_threads, 'far thread')} on {result.far}"
    near = (result.generate_idle_time_s or 0.0) / result.total_time_s
    far = (result.transfer_idle_time_s or 0.0) / result.total_time_s
    return f"{text}; near threads waited {near:.0%} of it, far threads {far:.0%}."


def stages(result: PipelineResult) -> list[tuple[str, str, str]]:
    """Side, stage and key of each time that there is, the whole last."""
    found = [
        ("near" if result.far is None else side, stage, key)
        for side, stage, key in _STAGES
        if getattr(result, key) is not None
    ]
    return [*found, ("", "whole", _TOTAL)]


def _figure(result: PipelineResult) -> Figure:
    from nearfar.report.charts import Bar, row_chart
    from nearfar.report.drawing import draw

    bars = [
        Bar(
            f"{side} {stage}".strip() + origin_mark(result, key), side or "whole",
            *result.estimate(key), format_quantity(key, getattr(result, key)),
        )
        for side, stage, key in stages(result)
    ]  # fmt: skip
    chart = row_chart(bars, "time of all iterations (s)")
    found = origins([(result, _TOTAL)])
    return draw("Where the time went.", chart, height=26 * len(bars), origins=found)


def notes(result: PipelineResult) -> list[str]:
    """What was checked, and what limits the figures."""
    told = [
        f"What the first {count(result.compared_iterations, 'iteration')} of every repeat found is "
        "what one near thread alone finds, to the bit."
    ]
    if result.oversubscribed:
        told.append("Threads shared processors: such times feed no fit.")
    return [*told, IN_CACHE] if result.in_cache else told
