"""A simulated device under load: latency by bandwidth."""

from __future__ import annotations

from nearfar.records.figures import Origin
from nearfar.records.simulation import LoadCurve
from nearfar.report.charts.lines import Axis, Line, Spot, line_chart
from nearfar.report.charts.palette import series_color
from nearfar.report.html.section import Cell, Context, Figure, Section, Table
from nearfar.report.wording import format_quantity

_KEYS = {"bandwidth_bytes_per_s": "Bandwidth", "latency_ns": "Latency", "p99_latency_ns": "p99"}


def section(context: Context) -> Section | None:
    """Return the section, or None if no curve was simulated."""
    result = context.run.sections.load_curve
    if result is None:
        return None
    finding = (
        f"{result.device}, {result.pattern}, {result.read_share:.0%} reads: "
        f"{format_quantity('latency_ns', result.latency_ns)} idle, at most "
        f"{format_quantity('bandwidth_bytes_per_s', result.bandwidth_bytes_per_s)} (simulated)."
    )
    rows = [
        [Cell(format_quantity(key, getattr(p, key)), "", Origin.SIMULATED) for key in _KEYS]
        for p in result.points
    ]
    table = Table([*_KEYS.values()], rows, "All loads", frozenset(range(3)), folded=True)
    return Section(
        "load_curve", "Latency by load", finding, [_figure(result)], [table], [*result.limits]
    )


def _figure(result: LoadCurve) -> Figure:
    from nearfar.report.charts.drawing import draw

    lines = [
        Line(name, series_color(i), _spots(result, key), "emulated")
        for i, (name, key) in enumerate((("mean", "latency_ns"), ("p99", "p99_latency_ns")))
    ]
    chart = line_chart(lines, Axis("bandwidth (GB/s)"), Axis("latency of a read (ns)"))
    caption = f"Latency of {result.device} by the bandwidth that is asked for. Dashed: simulated."
    return draw(caption, chart, height=300, narrow_height=240, origins=(Origin.SIMULATED,))


def _spots(result: LoadCurve, key: str) -> list[Spot]:
    return [
        Spot(p.bandwidth_bytes_per_s / 1e9, value, value, value)
        for p in result.points
        for value in [getattr(p, key)]
    ]
