"""Single-access latency distribution."""

from __future__ import annotations

from nearfar.records.depth import TailsResult
from nearfar.report.charts.rows import Bar, padded, row_chart
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import (
    format_quantity,
    origin_mark,
    origins,
    percentile,
    say,
)
from nearfar.units import format_size

_KEY = "latency_ns"


def section(context: Context) -> Section | None:
    """Return the section, or None if single loads were not timed."""
    result = context.run.sections.tails
    if result is None or not result.points:
        return None
    return Section(
        "tails",
        "Single-access latency distribution",
        finding(result),
        [_figure(result)],
        [_table(result)],
        notes(result),
    )


def finding(result: TailsResult) -> str:
    """Compare the median with the highest percentile."""
    points = sorted(result.points, key=lambda point: point.share)
    middle, last = points[0], points[-1]
    text = f"On {result.tier}, {percentile(middle.share)} of single loads is {say(middle, _KEY)}"
    if last is middle or middle.latency_ns == 0:
        return f"{text}."
    times = last.latency_ns / middle.latency_ns
    return f"{text} and {percentile(last.share)} is {say(last, _KEY)}, {times:.3g} times that."


def _figure(result: TailsResult) -> Figure:
    from nearfar.report.charts.drawing import draw

    bars = [
        Bar(
            f"{percentile(p.share)}{origin_mark(p, _KEY)}",
            "loads",
            *p.estimate(_KEY),
            format_quantity(_KEY, p.latency_ns),
            bool(origin_mark(p, _KEY)),
        )
        for p in result.points
    ]
    chart = row_chart(bars, "latency of a load (ns, logarithmic)", log=True, domain=padded(bars))
    caption = (
        "Percentiles of single loads, the timer's own cost subtracted; bars are 95 % intervals."
    )
    found = origins((p, _KEY) for p in result.points)
    return draw(caption, chart, height=26 * len(bars), origins=found)


def _table(result: TailsResult) -> Table:
    rows = [[Cell(percentile(p.share)), figure_cell(p, _KEY)] for p in result.points]
    return Table(["Percentile", "Latency"], rows, "Percentiles", frozenset({1}), folded=True)


def notes(result: TailsResult) -> list[str]:
    """State what was subtracted, and what the tail includes."""
    return [
        f"Random loads from {format_size(result.region_bytes)}, each timed by itself. The timer "
        f"alone costs {say(result, 'timer_ns')}, which was subtracted from each.",
        "The tail also includes interrupts and neighbors: it describes the machine during the "
        "run, not the memory alone.",
    ]
