"""Pictures of curves: values over a coordinate, with their intervals and how they came about.

``line_chart`` returns a builder for ``drawing.draw``; Altair is imported only when one is built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nearfar.report.drawing import (
    SIZE_LABEL,
    Builder,
    Canvas,
    End,
    corner_labels,
    decade_ticks,
    end_labels,
    inline,
    least_positive,
    size_ticks,
)
from nearfar.report.palette import MUTED
from nearfar.units import format_size

if TYPE_CHECKING:
    import altair as alt

    from nearfar.report.drawing import Picture

#: Solid for what was measured, dashed for what stands in for something else, thin dots for others'.
_STROKES = {"measured": [1, 0], "emulated": [6, 4], "published": [2, 3]}


#: Pixels that a letter of a label takes, a reader's own letters included.
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
    """A curve under a name; spots are joined in their order."""

    name: str
    colour: str
    spots: Sequence[Spot]
    kind: Literal["measured", "emulated", "published"] = "measured"


@dataclass(frozen=True)
class Axis:
    """One axis. ``ticks`` are the places to label (chosen where there are none)."""

    title: str
    kind: Literal["linear", "log", "sizes"] = "linear"
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Look:
    """How intervals are drawn, where names go in a narrow window, and upright strips (x, from, to).

    Bands suit many points, bars few or those that do not lie in the order of x.
    """

    intervals: Literal["band", "bars"] = "bars"
    names: Literal["upper left", "lower right"] = "upper left"
    strips: Sequence[tuple[int, int, int]] = ()


def line_chart(lines: Sequence[Line], x: Axis, y: Axis, look: Look = Look()) -> Builder:
    """Lines with their intervals, named at their ends, or in a corner of a narrow picture."""
    rows = [_row(index, line, order) for index, line in enumerate(lines)
            for order in range(len(line.spots))]  # fmt: skip
    across, up = _domain(x, rows, "x", "x"), _domain(y, rows, "low", "high")
    ends = [End(line.name, line.spots[-1].value, _colour(line)) for line in lines]

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        x_scale, y_scale = _scale(x, across), _scale(y, up)
        x_axis = alt.X("x:Q", scale=x_scale, axis=_axis(x, across, canvas, False))
        y_axis = alt.Y("value:Q", scale=y_scale, axis=_axis(y, up, canvas, True))
        base = alt.Chart(inline(rows)).encode(x=x_axis, detail=alt.Detail("series:N"))
        layers = [
            *_strips(look.strips, across, x_scale, canvas),
            *_curves(base, y_axis, y_scale, look),
        ]
        if len(lines) > 1:
            at_ends = end_labels(ends, canvas, up, y.kind != "linear")
            rising = look.names == "upper left"
            layers.append(corner_labels(ends, canvas, rising=rising) if canvas.narrow else at_ends)
        return alt.layer(*layers).properties(width=canvas.width, height=canvas.height)

    return build


def _row(series: int, line: Line, order: int) -> dict[str, Any]:
    spot = line.spots[order]
    return {
        "series": series, "order": order, "x": spot.x, "value": spot.value, "low": spot.low,
        "high": spot.high, "colour": _colour(line), "kind": line.kind,
    }  # fmt: skip


def _colour(line: Line) -> str:
    return MUTED if line.kind == "published" else line.colour


def _domain(
    axis: Axis, rows: Sequence[dict[str, Any]], low_key: str, high_key: str
) -> tuple[float, float]:
    """From the least to the greatest, with room around values; linear ones from zero."""
    high = max(row[high_key] for row in rows)
    if axis.kind == "linear":
        return 0.0, high * 1.06
    low = least_positive(row[low_key] for row in rows)
    room = 1.25 if low_key != high_key else 1.0
    return low / room, high * room


def _scale(axis: Axis, domain: tuple[float, float]) -> alt.Scale:
    import altair as alt

    if axis.kind == "linear":
        return alt.Scale(domain=list(domain), nice=False)
    base = 2 if axis.kind == "sizes" else 10
    return alt.Scale(type="log", base=base, domain=list(domain), nice=False, clamp=True)


def _axis(axis: Axis, domain: tuple[float, float], canvas: Canvas, upright: bool) -> alt.Axis:
    import altair as alt

    if axis.kind == "sizes":
        most = 3 if canvas.narrow else max(3, canvas.width // 80)
        ticks: Sequence[float] = axis.ticks or size_ticks(*domain, most)
        return alt.Axis(title=axis.title, grid=upright, labelExpr=SIZE_LABEL, values=list(ticks))
    chosen: dict[str, Any] = {"tickCount": 5}
    if axis.ticks:
        chosen = {"values": list(axis.ticks)}
    elif axis.kind == "log":
        chosen = {"values": _log_ticks(*domain)}
    return alt.Axis(title=axis.title, grid=upright, format=".6~g", **chosen)


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 in every decade; more of them where the values span less than one."""
    ticks = decade_ticks(low, high)
    if len(ticks) > 2:
        return ticks
    power = 10.0 ** math.floor(math.log10(low))
    return [
        tick for tick in (m * power for m in (1, 1.5, 2, 3, 4, 6, 8, 10, 15)) if low <= tick <= high
    ]


def _curves(base: alt.Chart, y: alt.Y, y_scale: alt.Scale, look: Look) -> list[alt.Chart]:
    """Intervals below, then the lines, then points where intervals are bars."""
    import altair as alt

    colour = alt.Color("colour:N", scale=None)
    low = alt.Y("low:Q", scale=y_scale)
    stroke = alt.Scale(domain=list(_STROKES), range=list(_STROKES.values()))
    line = base.mark_line().encode(
        y=y, color=colour, order=alt.Order("order:Q"),
        strokeDash=alt.StrokeDash("kind:N", legend=None, scale=stroke),
        strokeWidth=alt.condition("datum.kind == 'published'", alt.value(1.5), alt.value(2)),
    )  # fmt: skip
    own = base.transform_filter("datum.kind != 'published'")
    if look.intervals == "band":
        band = own.mark_area(opacity=0.25).encode(
            y=low, y2=alt.Y2("high:Q"), fill=alt.Fill("colour:N", scale=None)
        )
        return [band, line]
    bars = own.mark_rule(strokeWidth=2, opacity=0.5).encode(
        y=low, y2=alt.Y2("high:Q"), color=colour
    )
    dots = own.mark_circle(size=34, opacity=1).encode(y=y, color=colour)
    return [line, bars, dots]


def lanes(starts: Sequence[float], widths: Sequence[float]) -> list[int]:
    """For labels from left to right, the topmost line on which each has room."""
    ends: list[float] = []
    chosen = []
    for start, width in zip(starts, widths, strict=True):
        lane = next((i for i, end in enumerate(ends) if end <= start), len(ends))
        ends[lane : lane + 1] = [start + width]
        chosen.append(lane)
    return chosen


def _strips(
    strips: Sequence[tuple[int, int, int]],
    across: tuple[float, float],
    x_scale: alt.Scale,
    canvas: Canvas,
) -> list[alt.Chart]:
    """Upright strips with their size written on top, staggered where there is no room."""
    import altair as alt

    if not strips:
        return []
    strips = sorted(strips)
    texts = [format_size(at) for at, _, _ in strips]
    octaves = max(math.log2(across[1] / across[0]), 1e-9)
    starts = [canvas.width * math.log2(at / across[0]) / octaves for at, _, _ in strips]
    lines = lanes(starts, [_LETTER * (len(text) + 2) for text in texts])
    rows = [
        {"x": at, "from": low, "to": high, "text": text, "pixel": 8 + 15 * line}
        for (at, low, high), text, line in zip(strips, texts, lines, strict=True)
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
        x=x, y=alt.value(0), y2=alt.value(canvas.height)
    )
    text = base.mark_text(align="left", dx=5, color=MUTED, fontSize=12).encode(
        x=x, y=alt.Y("pixel:Q", scale=None, axis=None), text=alt.Text("text:N")
    )
    return [strip, rule, text]
