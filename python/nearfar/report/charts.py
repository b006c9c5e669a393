"""The kinds of pictures: rows of values, lines over threads, latency curves.

Each function returns a builder for ``drawing.draw``; Altair is imported only when one is built.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearfar.report.drawing import (
    SIZE_LABEL,
    Builder,
    Canvas,
    End,
    corner_labels,
    decade_ticks,
    end_labels,
    inline,
    size_ticks,
)
from nearfar.report.palette import GRID, INK, MUTED, PAPER, series_colour
from nearfar.units import format_size

if TYPE_CHECKING:
    import altair as alt

    from nearfar.report.drawing import Picture


@dataclass(frozen=True)
class Bar:
    """One row of a picture of rows: a value with its interval, and how it is written."""

    label: str
    group: str
    value: float
    low: float
    high: float
    text: str
    hollow: bool = False


def row_chart(
    bars: Sequence[Bar], title: str, *, log: bool = False,
    domain: tuple[float, float] | None = None,
) -> Builder:  # fmt: skip
    """Values as dots on rows with their intervals; one colour a group, the value written beside."""
    groups = list(dict.fromkeys(bar.group for bar in bars))
    rows = [
        {
            "label": bar.label, "value": bar.value, "low": bar.low, "high": bar.high,
            "text": bar.text, "colour": series_colour(groups.index(bar.group)),
            "fill": PAPER if bar.hollow else series_colour(groups.index(bar.group)),
        }
        for bar in bars
    ]  # fmt: skip
    low, high = domain or padded(bars) if log else _from_zero(bars)

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        axis = alt.Axis(
            title=title, format="~g", grid=True,
            **({"values": _sparse(decade_ticks(low, high), 4 if canvas.narrow else 6)} if log
               else {"tickCount": 4 if canvas.narrow else 6}),
        )  # fmt: skip
        x_scale = alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False)
        y = alt.Y(
            "label:N",
            sort=None,
            title=None,
            axis=alt.Axis(grid=False, labelColor=INK, labelPadding=8),
        )
        colour = alt.Color("colour:N", scale=None)
        base = alt.Chart(inline(rows))
        track = base.mark_rule(strokeWidth=1, color=GRID).encode(
            y=y, x=alt.value(0), x2=alt.value(canvas.width)
        )
        bar = base.mark_rule(strokeWidth=5, opacity=0.4).encode(
            y=y, x=alt.X("low:Q", scale=x_scale, axis=axis), x2="high:Q", color=colour
        )
        dot = base.mark_circle(size=42, opacity=1, strokeWidth=1.5).encode(
            y=y, x=alt.X("value:Q", scale=x_scale), stroke=colour,
            fill=alt.Fill("fill:N", scale=None),
        )  # fmt: skip
        text = base.mark_text(align="left", dx=8).encode(
            y=y, x=alt.value(canvas.width), text="text:N"
        )
        return alt.layer(track, bar, dot, text).properties(width=canvas.width, height=canvas.height)

    return build


def padded(bars: Sequence[Bar]) -> tuple[float, float]:
    """A logarithmic domain with room on both sides."""
    return min(bar.low for bar in bars) / 1.3, max(bar.high for bar in bars) * 1.3


def _from_zero(bars: Sequence[Bar]) -> tuple[float, float]:
    return 0.0, max(bar.high for bar in bars) * 1.06


def _sparse(ticks: list[float], most: int) -> list[float]:
    """At most so many of the ticks 1, 2, 5, 10 …, evenly left out; powers of ten where they do."""
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
    """Lines over the number of threads with error bars; hollow where threads shared processors."""
    names = list(dict.fromkeys(dot.series for dot in dots))
    counts = sorted({dot.threads for dot in dots})
    log = counts[-1] >= 8
    rows = [
        {
            "series": dot.series, "threads": dot.threads, "value": dot.value, "low": dot.low,
            "high": dot.high, "colour": series_colour(names.index(dot.series)),
            "fill": PAPER if dot.oversubscribed else series_colour(names.index(dot.series)),
            "dash": int(dot.emulated),
        }
        for dot in dots
    ]  # fmt: skip
    domain = (0.0, max(dot.high for dot in dots) * 1.06)
    last = {dot.series: dot for dot in sorted(dots, key=lambda dot: dot.threads)}
    ends = [End(n, last[n].value, series_colour(names.index(n))) for n in names]

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        ticks = counts if len(counts) <= (6 if canvas.narrow else 12) else counts[::2]
        margin = 2**0.15 if log else 0.15
        edges = (
            [counts[0] / margin, counts[-1] * margin] if log else [1 - margin, counts[-1] + margin]
        )
        x_scale = alt.Scale(type="log", base=2, domain=edges) if log else alt.Scale(domain=edges)
        x = alt.X(
            "threads:Q", scale=x_scale,
            axis=alt.Axis(title="threads", values=ticks, format="d", grid=False),
        )  # fmt: skip
        y_scale = alt.Scale(domain=list(domain), nice=False)
        y = alt.Y("value:Q", scale=y_scale, axis=alt.Axis(title=title, tickCount=5))
        colour = alt.Color("colour:N", scale=None)
        base = alt.Chart(inline(rows))
        line = base.mark_line(strokeWidth=2).encode(
            x=x, y=y, color=colour, detail="series:N", strokeDash=_dashed(alt)
        )
        error = base.mark_rule(strokeWidth=2, opacity=0.5).encode(
            x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q", color=colour
        )
        dot = base.mark_circle(size=55, opacity=1, strokeWidth=2).encode(
            x=x, y=y, stroke=colour, fill=alt.Fill("fill:N", scale=None)
        )
        return alt.layer(line, error, dot, end_labels(ends, canvas, domain, False)).properties(
            width=canvas.width, height=canvas.height
        )

    return build


def _dashed(alt_module: Any) -> Any:
    """Dashes for what was emulated: it never looks like what was measured."""
    return alt_module.StrokeDash(
        "dash:O", legend=None, scale=alt_module.Scale(domain=[0, 1], range=[[1, 0], [6, 4]])
    )


def curve_chart(
    rows: Sequence[dict[str, Any]], ends: Sequence[End], knees: Sequence[tuple[int, int, int]]
) -> Builder:
    """Latency over region size, both logarithmic; bands are intervals, upright strips the knees.

    ``rows`` hold series, region, value, low, high, colour and dash; ``knees`` value, low and high.
    """
    low, high = min(r["low"] for r in rows) / 1.25, max(r["high"] for r in rows) * 1.25
    first, last = min(r["region"] for r in rows), max(r["region"] for r in rows)

    def build(canvas: Canvas) -> Picture:
        import altair as alt

        x_scale = alt.Scale(type="log", base=2, domain=[first, last], nice=False)
        x = alt.X(
            "region:Q", scale=x_scale,
            axis=alt.Axis(
                title="size of the region that is walked", grid=False, labelExpr=SIZE_LABEL,
                values=size_ticks(first, last, 3 if canvas.narrow else 10),
            ),
        )  # fmt: skip
        y_scale = alt.Scale(type="log", domain=[low, high], nice=False)
        y = alt.Y(
            "value:Q", scale=y_scale,
            axis=alt.Axis(title="latency of a load (ns)", format="~g",
                          values=decade_ticks(low, high)),
        )  # fmt: skip
        colour = alt.Color("colour:N", scale=None)
        base = alt.Chart(inline(rows))
        band = base.mark_area(opacity=0.25).encode(
            x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q", detail="series:N",
            fill=alt.Fill("colour:N", scale=None),
        )  # fmt: skip
        line = base.mark_line(strokeWidth=2).encode(
            x=x, y=y, color=colour, detail="series:N", strokeDash=_dashed(alt)
        )
        layers = [*_knee_layers(knees, x_scale, canvas), band, line]
        names = (
            corner_labels(ends) if canvas.narrow else end_labels(ends, canvas, (low, high), True)
        )
        return alt.layer(*layers, names).properties(width=canvas.width, height=canvas.height)

    return build


def _knee_layers(
    knees: Sequence[tuple[int, int, int]], x_scale: alt.Scale, canvas: Canvas
) -> list[alt.Chart]:
    import altair as alt

    if not knees:
        return []
    rows = [
        {"region": at, "from": low, "to": high, "text": format_size(at)} for at, low, high in knees
    ]
    base = alt.Chart(inline(rows))
    x = alt.X("region:Q", scale=x_scale)
    strip = base.mark_rect(color=MUTED, opacity=0.14).encode(
        x=alt.X("from:Q", scale=x_scale), x2="to:Q", y=alt.value(0), y2=alt.value(canvas.height)
    )
    rule = base.mark_rule(color=MUTED, strokeDash=[2, 3]).encode(
        x=x, y=alt.value(0), y2=alt.value(canvas.height)
    )
    text = base.mark_text(align="left", dx=5, color=MUTED, fontSize=12).encode(
        x=x, y=alt.value(canvas.height - 8 if canvas.narrow else 8), text="text:N"
    )
    return [strip, rule, text]
