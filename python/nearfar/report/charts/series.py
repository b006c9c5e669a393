"""Pictures over time: one line per thread, or one lane per stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.report.charts.drawing import Builder, Canvas, End, end_labels, inline, labels_above
from nearfar.report.charts.palette import INK, PAPER, series_color

if TYPE_CHECKING:
    from nearfar.report.charts.drawing import Picture

#: Most points of a drawn line. Of a longer one, the lowest point of each group is drawn, because a
#: drop of a rate must not be lost. Peaks are lost, so the picture does not suit bytes in use.
MAX_POINTS = 400


@dataclass(frozen=True)
class TimeSeries:
    """A line of the picture, such as a thread: rates over time."""

    name: str
    times: Sequence[float]
    values: Sequence[float]


def rates_chart(lines: Sequence[TimeSeries], x_title: str, y_title: str) -> Builder:
    """Return lines over time, starting at zero; names at their ends."""
    thinned = [thin(line, MAX_POINTS) for line in lines]
    rows = [
        {"name": line.name, "x": x, "y": y, "color": series_color(index)}
        for index, line in enumerate(thinned)
        for x, y in zip(line.times, line.values, strict=True)
    ]
    top = max(max(line.values) for line in thinned) * 1.06
    ends = [End(line.name, line.values[-1], series_color(i)) for i, line in enumerate(thinned)]

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        ticks = 3 if canvas.narrow else 6
        x = alt.X("x:Q", axis=alt.Axis(title=x_title, grid=False, tickCount=ticks))
        scale = alt.Scale(domain=[0, top], nice=False)
        y = alt.Y("y:Q", scale=scale, axis=alt.Axis(title=y_title, tickCount=5))
        curves = (
            alt.Chart(inline(rows))
            .mark_line(strokeWidth=1.2)
            .encode(x=x, y=y, detail="name:N", color=alt.Color("color:N", scale=None))
        )
        at_ends = end_labels(ends, canvas, (0, top), False)
        names = labels_above(ends) if canvas.narrow else at_ends
        return alt.layer(curves, names).properties(width=canvas.width, height=canvas.height)

    return build


@dataclass(frozen=True)
class Span:
    """An activity in a lane from one time to another; lanes of one group share its color."""

    lane: str
    group: str
    start: float
    end: float


def timeline_chart(spans: Sequence[Span], x_title: str) -> Builder:
    """Return bars over time, one lane each, in the order of the lanes."""
    groups = list(dict.fromkeys(span.group for span in spans))
    rows = [
        {
            "lane": span.lane,
            "x": span.start,
            "x2": span.end,
            "color": series_color(groups.index(span.group)),
        }
        for span in spans
    ]

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        axis = alt.Axis(title=x_title, tickCount=4 if canvas.narrow else 8)
        y_axis = alt.Axis(grid=False, labelColor=INK, labelPadding=8)
        bars = (
            alt.Chart(inline(rows))
            .mark_bar(size=12, stroke=PAPER, strokeWidth=1)
            .encode(
                x=alt.X("x:Q", axis=axis),
                x2=alt.X2("x2:Q"),
                y=alt.Y("lane:N", sort=None, title=None, axis=y_axis),
                color=alt.Color("color:N", scale=None),
            )
        )
        return alt.layer(bars).properties(width=canvas.width, height=canvas.height)

    return build


def thin(line: TimeSeries, most: int) -> TimeSeries:
    """Return the lowest value of each group of neighbors if there are more than ``most`` points."""
    group = -(-len(line.times) // most)
    if group <= 1:
        return line
    lowest = [
        min(range(first, min(first + group, len(line.times))), key=lambda i: line.values[i])
        for first in range(0, len(line.times), group)
    ]
    return TimeSeries(line.name, [line.times[i] for i in lowest], [line.values[i] for i in lowest])
