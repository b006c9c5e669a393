"""Pictures of curves: values over a coordinate, with their intervals and origins.

``line_chart`` returns a builder for ``drawing.draw``; Altair is imported only when one is built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nearfar.report.charts.drawing import (
    ROW,
    SIZE_LABEL,
    Builder,
    Canvas,
    End,
    decade_ticks,
    end_labels,
    inline,
    labels_above,
    min_positive,
    size_ticks,
)
from nearfar.report.charts.palette import MUTED

if TYPE_CHECKING:
    import altair as alt

    from nearfar.report.charts.drawing import Picture

#: Solid for measured, dashed for emulated, thin dots for published values.
_STROKES = {"measured": [1, 0], "emulated": [6, 4], "published": [2, 3]}


#: Width of a label's letter in pixels, with a margin for the reader's font.
_LETTER = 7.5


@dataclass(frozen=True)
class Spot:
    """One point of a line, with the interval of its value."""

    x: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """A named curve; its points are joined in order."""

    name: str
    color: str
    spots: Sequence[Spot]
    kind: Literal["measured", "emulated", "published"] = "measured"


@dataclass(frozen=True)
class Axis:
    """One axis. ``ticks`` are the labeled positions (chosen automatically if empty); ``least`` is
    the start of a linear axis."""

    title: str
    kind: Literal["linear", "log", "sizes"] = "linear"
    ticks: Sequence[float] = ()
    least: float = 0.0


@dataclass(frozen=True)
class Strip:
    """A vertical strip from ``low`` to ``high``, a rule at ``at`` and a label above the plot."""

    at: float
    low: float
    high: float
    label: str


@dataclass(frozen=True)
class Look:
    """Style of intervals, lines and vertical strips.

    Bands suit many points; bars suit few points, or points not in the order of x. ``steps``: a
    value holds until the next point.
    """

    intervals: Literal["band", "bars"] = "bars"
    strips: Sequence[Strip] = ()
    steps: bool = False


def line_chart(lines: Sequence[Line], x: Axis, y: Axis, look: Look = Look()) -> Builder:
    """Return lines with intervals. Lines are named at their ends; in a narrow picture, in rows
    above it."""
    rows = [
        _row(index, line, order)
        for index, line in enumerate(lines)
        for order in range(len(line.spots))
    ]
    across, up = _domain(x, rows, "x", "x"), _domain(y, rows, "low", "high")
    ends = [End(line.name, line.spots[-1].value, _color(line)) for line in lines]

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        x_scale, y_scale = _scale(x, across), _scale(y, up)
        x_axis = alt.X("x:Q", scale=x_scale, axis=_axis(x, across, canvas, False))
        y_axis = alt.Y("value:Q", scale=y_scale, axis=_axis(y, up, canvas, True))
        base = alt.Chart(inline(rows)).encode(x=x_axis, detail=alt.Detail("series:N"))
        layers = [
            *_strips(look.strips, x, across, x_scale, canvas),
            *_curves(base, y_axis, y_scale, look),
        ]
        if len(lines) > 1:
            at_ends = end_labels(ends, canvas, up, y.kind != "linear")
            ordered = sorted(look.strips, key=lambda strip: strip.at)
            taken = 1 + max(_lanes(ordered, x, across, canvas), default=-1)
            layers.append(labels_above(ends, taken) if canvas.narrow else at_ends)
        return alt.layer(*layers).properties(width=canvas.width, height=canvas.height)

    return build


def _row(series: int, line: Line, order: int) -> dict[str, Any]:
    spot = line.spots[order]
    return {
        "series": series,
        "order": order,
        "x": spot.x,
        "value": spot.value,
        "low": spot.low,
        "high": spot.high,
        "color": _color(line),
        "kind": line.kind,
    }


def _color(line: Line) -> str:
    return MUTED if line.kind == "published" else line.color


def _domain(
    axis: Axis, rows: Sequence[dict[str, Any]], low_key: str, high_key: str
) -> tuple[float, float]:
    """The range of an axis, with room around the values; a linear axis begins at ``axis.least``."""
    high = max(row[high_key] for row in rows)
    if axis.kind == "linear":
        return axis.least, axis.least + (high - axis.least or 1.0) * 1.06
    low = min_positive(row[low_key] for row in rows)
    room = 1.25 if low_key != high_key else 1.0
    return low / room, high * room


def _scale(axis: Axis, domain: tuple[float, float]) -> alt.Scale:
    import altair as alt

    if axis.kind == "linear":
        return alt.Scale(domain=list(domain), nice=False)
    base = 2 if axis.kind == "sizes" else 10
    return alt.Scale(type="log", base=base, domain=list(domain), nice=False, clamp=True)


def _axis(axis: Axis, domain: tuple[float, float], canvas: Canvas, has_grid: bool) -> alt.Axis:
    import altair as alt

    if axis.kind == "sizes":
        most = 3 if canvas.narrow else max(3, canvas.width // 80)
        ticks: Sequence[float] = axis.ticks or size_ticks(*domain, most)
        return alt.Axis(title=axis.title, grid=has_grid, labelExpr=SIZE_LABEL, values=list(ticks))
    chosen: dict[str, Any] = {"tickCount": 5}
    if axis.ticks:
        chosen = {"values": list(axis.ticks)}
    elif axis.kind == "log":
        chosen = {"values": _log_ticks(*domain)}
    return alt.Axis(title=axis.title, grid=has_grid, format=".6~g", **chosen)


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5 in every decade; more ticks if the values span less than one decade."""
    ticks = decade_ticks(low, high)
    if len(ticks) > 2:
        return ticks
    power = 10.0 ** math.floor(math.log10(low))
    return [
        tick for tick in (m * power for m in (1, 1.5, 2, 3, 4, 6, 8, 10, 15)) if low <= tick <= high
    ]


def _curves(base: alt.Chart, y: alt.Y, y_scale: alt.Scale, look: Look) -> list[alt.Chart]:
    """Return intervals at the bottom, then lines, then points if intervals are bars."""
    import altair as alt

    color = alt.Color("color:N", scale=None)
    low = alt.Y("low:Q", scale=y_scale)
    stroke = alt.Scale(domain=list(_STROKES), range=list(_STROKES.values()))
    line = base.mark_line(interpolate="step-after" if look.steps else "linear").encode(
        y=y,
        color=color,
        order=alt.Order("order:Q"),
        strokeDash=alt.StrokeDash("kind:N", legend=None, scale=stroke),
        strokeWidth=alt.condition("datum.kind == 'published'", alt.value(1.5), alt.value(2)),
    )
    own = base.transform_filter("datum.kind != 'published'")
    if look.intervals == "band":
        band = own.mark_area(
            opacity=0.25, interpolate="step-after" if look.steps else "linear"
        ).encode(y=low, y2=alt.Y2("high:Q"), fill=alt.Fill("color:N", scale=None))
        return [band, line]
    bars = own.mark_rule(strokeWidth=2, opacity=0.5).encode(y=low, y2=alt.Y2("high:Q"), color=color)
    dots = own.mark_circle(size=34, opacity=1).encode(y=y, color=color)
    return [line, bars, dots]


def lanes(starts: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Return, for labels from left to right, the topmost row with room for each."""
    ends: list[float] = []
    chosen = []
    for start, width in zip(starts, widths, strict=True):
        lane = next((i for i, end in enumerate(ends) if end <= start), len(ends))
        ends[lane : lane + 1] = [start + width]
        chosen.append(lane)
    return chosen


def _lanes(
    strips: Sequence[Strip], axis: Axis, across: tuple[float, float], canvas: Canvas
) -> list[int]:
    """Return the row of text above the plot for each strip's label, in the order of the strips."""
    scale = float if axis.kind == "linear" else math.log
    low, high = scale(across[0]), scale(across[1])
    starts = [canvas.width * (scale(s.at) - low) / max(high - low, 1e-9) for s in strips]
    return lanes(starts, [_LETTER * (len(strip.label) + 2) for strip in strips])


def _strips(
    given: Sequence[Strip],
    axis: Axis,
    across: tuple[float, float],
    x_scale: alt.Scale,
    canvas: Canvas,
) -> list[alt.Chart]:
    """Return vertical strips, their labels above the plot, staggered if they would overlap."""
    import altair as alt

    if not given:
        return []
    strips = sorted(given, key=lambda strip: strip.at)
    rows = [
        {"x": s.at, "from": s.low, "to": s.high, "text": s.label, "pixel": -ROW * (lane + 0.5)}
        for s, lane in zip(strips, _lanes(strips, axis, across, canvas), strict=True)
    ]
    base = alt.Chart(inline(rows))
    x = alt.X("x:Q", scale=x_scale)
    strip = base.mark_rect(color=MUTED, opacity=0.14).encode(
        x=alt.X("from:Q", scale=x_scale),
        x2=alt.X2("to:Q"),
        y=alt.value(0),
        y2=alt.value(canvas.height),
    )
    rule = base.mark_rule(color=MUTED, strokeDash=[2, 3]).encode(
        x=x, y=alt.Y("pixel:Q", scale=None, axis=None), y2=alt.value(canvas.height)
    )
    text = base.mark_text(align="left", dx=5, color=MUTED, fontSize=12).encode(
        x=x, y=alt.Y("pixel:Q", scale=None, axis=None), text=alt.Text("text:N")
    )
    return [strip, rule, text]
