"""Single loads by percentile."""

from __future__ import annotations

from nearfar.records.depth import TailsResult
from nearfar.report.charts import Bar, padded, row_chart
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import (
    format_quantity,
    origin_mark,
    origins,
    percentile,
    say,
)
from nearfar.units import format_size

#: Where it stands on the page.
PLACE = 50

_KEY = "latency_ns"


def section(context: Context) -> Section | None:
    """The section, or None where loads were not timed one by one."""
    result = context.run.sections.tails
    if result is None or not result.points:
        return None
    return Section(
        "tails", "Tails: loads one by one", finding(result), [_figure(result)], [_table(result)],
        notes(result),
    )  # fmt: skip


def finding(result: TailsResult) -> str:
    """The middle against the far end."""
    points = sorted(result.points, key=lambda point: point.share)
    middle, last = points[0], points[-1]
    text = f"On {result.tier}, {percentile(middle.share)} of single loads is {say(middle, _KEY)}"
    if last is middle or middle.latency_ns == 0:
        return f"{text}."
    times = last.latency_ns / middle.latency_ns
    return f"{text} and {percentile(last.share)} is {say(last, _KEY)}, {times:.3g} times that."


def _figure(result: TailsResult) -> Figure:
    from nearfar.report.drawing import draw

    bars = [
        Bar(
            f"{percentile(p.share)}{origin_mark(p, _KEY)}", "loads", *p.estimate(_KEY),
            format_quantity(_KEY, p.latency_ns), bool(origin_mark(p, _KEY)),
        )
        for p in result.points
    ]  # fmt: skip
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
    """What was subtracted, and what the far tail is made of."""
    return [
        f"Random loads from {format_size(result.region_bytes)}, each timed by itself. The timer "
        f"alone costs {say(result, 'timer_ns')}, which was subtracted from each.",
        "The far tail is also made of interrupts and of neighbours: it tells of the machine as it "
        "was, not of the memory alone.",
    ]
