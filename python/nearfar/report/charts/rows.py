"""Pictures of named values: rows, and lines over threads. Curves are in ``lines``.

Each function returns a builder for ``drawing.draw``; Altair is imported only when one is built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nearfar.report.charts.drawing import (
    Builder,
    Canvas,
    End,
    decade_ticks,
    end_labels,
    inline,
    min_positive,
)
from nearfar.report.charts.palette import GRID, INK, PAPER, series_color

if TYPE_CHECKING:
    import altair as alt

    from nearfar.report.charts.drawing import Picture


@dataclass(frozen=True)
class Bar:
    """One row of a picture: a value (drawn as a dot), its interval (drawn as a bar) and its
    text."""

    label: str
    group: str
    value: float
    low: float
    high: float
    text: str
    hollow: bool = False


def row_chart(
    bars: Sequence[Bar], title: str, *, log: bool = False, domain: tuple[float, float] | None = None
) -> Builder:
    """Return values as dots on rows with intervals; one color per group."""
    groups = list(dict.fromkeys(bar.group for bar in bars))
    rows = [_row(bar, series_color(groups.index(bar.group))) for bar in bars]
    low, high = domain or (padded(bars) if log else (0.0, max(bar.high for bar in bars) * 1.06))

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        most = 4 if canvas.narrow else 6
        ticks = {"values": _sparse(decade_ticks(low, high), most)} if log else {"tickCount": most}
        axis = alt.Axis(title=title, format=".6~g", grid=True, **ticks)
        kind: Literal["log", "linear"] = "log" if log else "linear"
        scale = alt.Scale(type=kind, domain=[low, high], nice=False, clamp=log)
        y_axis = alt.Axis(grid=False, labelColor=INK, labelPadding=8)
        color = alt.Color("color:N", scale=None)
        base = alt.Chart(inline(rows)).encode(
            y=alt.Y("label:N", sort=None, title=None, axis=y_axis)
        )
        edge = canvas.width
        layers = [
            base.mark_rule(strokeWidth=1, color=GRID).encode(x=alt.value(0), x2=alt.value(edge)),
            base.mark_rule(strokeWidth=5, opacity=0.4).encode(
                x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), color=color
            ),
            _dots(base, 42).encode(x=alt.X("value:Q", scale=scale)),
            base.mark_text(align="left", dx=8).encode(x=alt.value(edge), text=alt.Text("text:N")),
        ]
        return alt.layer(*layers).properties(width=canvas.width, height=canvas.height)

    return build


def _row(bar: Bar, color: str) -> dict[str, Any]:
    return {
        "label": bar.label,
        "value": bar.value,
        "low": bar.low,
        "high": bar.high,
        "text": bar.text,
        "color": color,
        "fill": PAPER if bar.hollow else color,
    }


def _dots(base: alt.Chart, size: int) -> alt.Chart:
    """Return points, hollow if their row says so."""
    import altair as alt

    dots: alt.Chart = base.mark_circle(size=size, opacity=1, strokeWidth=1.5).encode(
        stroke=alt.Stroke("color:N", scale=None), fill=alt.Fill("fill:N", scale=None)
    )
    return dots


def padded(bars: Sequence[Bar]) -> tuple[float, float]:
    """Return a logarithmic domain with a margin on both sides."""
    low = min_positive(bar.low for bar in bars)
    return low / 1.3, max(low, *(bar.high for bar in bars)) * 1.3


def _sparse(ticks: list[float], most: int) -> list[float]:
    """Return at most ``most`` of the ticks 1, 2, 5, 10 …, thinned evenly."""
    if len(ticks) <= most:
        return ticks
    tens = [tick for tick in ticks if math.log10(tick) % 1 < 1e-9]
    return tens if len(tens) > 2 else ticks[:: math.ceil(len(ticks) / most)]


@dataclass(frozen=True)
class Dot:
    """One point of a scaling curve."""

    series: str
    threads: int
    value: float
    low: float
    high: float
    oversubscribed: bool
    emulated: bool


def scaling_chart(dots: Sequence[Dot], title: str) -> Builder:
    """Return lines over the number of threads with error bars; hollow if threads shared CPUs."""
    names = list(dict.fromkeys(dot.series for dot in dots))
    counts = sorted({dot.threads for dot in dots})
    rows = [_scaling_row(dot, series_color(names.index(dot.series))) for dot in dots]
    domain = (0.0, max(dot.high for dot in dots) * 1.06)
    last = {dot.series: dot for dot in sorted(dots, key=lambda dot: dot.threads)}
    ends = [End(n, last[n].value, series_color(names.index(n))) for n in names]

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        scale = alt.Scale(domain=list(domain), nice=False)
        y = alt.Y("value:Q", scale=scale, axis=alt.Axis(title=title, tickCount=5))
        color = alt.Color("color:N", scale=None)
        base = alt.Chart(inline(rows)).encode(x=_threads_axis(counts, canvas.narrow))
        layers = [
            base.mark_line(strokeWidth=2).encode(
                y=y, color=color, detail=alt.Detail("series:N"), strokeDash=_dashed()
            ),
            base.mark_rule(strokeWidth=2, opacity=0.5).encode(
                y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q"), color=color
            ),
            _dots(base, 55).encode(y=y),
            end_labels(ends, canvas, domain, False),
        ]
        return alt.layer(*layers).properties(width=canvas.width, height=canvas.height)

    return build


def _scaling_row(dot: Dot, color: str) -> dict[str, Any]:
    return {
        "series": dot.series,
        "threads": dot.threads,
        "value": dot.value,
        "low": dot.low,
        "high": dot.high,
        "color": color,
        "fill": PAPER if dot.oversubscribed else color,
        "dash": int(dot.emulated),
    }


def _threads_axis(counts: Sequence[int], narrow: bool) -> alt.X:
    """Return an axis of thread counts, logarithmic from eight on, with ticks at measured counts."""
    import altair as alt

    ticks = counts if len(counts) <= (6 if narrow else 12) else counts[::2]
    if counts[-1] >= 8:
        domain = [counts[0] / 1.1, counts[-1] * 1.1]
        scale = alt.Scale(type="log", base=2, domain=domain, nice=False)
    else:
        scale = alt.Scale(domain=[counts[0] - 0.15, counts[-1] + 0.15], nice=False)
    axis = alt.Axis(title="threads", values=list(ticks), format="d", grid=False)
    return alt.X("threads:Q", scale=scale, axis=axis)


def _dashed() -> alt.StrokeDash:
    """Return dashes for emulated values, so that they never look measured."""
    import altair as alt

    scale = alt.Scale(domain=[0, 1], range=[[1, 0], [6, 4]])
    return alt.StrokeDash("dash:O", legend=None, scale=scale)
