"""Memory-level parallelism: the cost of a load with several independent chases on one thread."""

from __future__ import annotations

from nearfar.records.depth import ChainPoint, ParallelismResult
from nearfar.report.charts.lines import Axis, Line, Spot, line_chart
from nearfar.report.charts.palette import series_color
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import line_kind, origins, say
from nearfar.units import format_size

_KEY = "latency_ns"


def section(context: Context) -> Section | None:
    """Return the section, or None if parallelism was not measured."""
    result = context.run.sections.parallelism
    if result is None or not result.points:
        return None
    return Section(
        "parallelism",
        "Memory-level parallelism",
        finding(result),
        [_figure(result)],
        [_table(result)],
        notes(result),
    )


def finding(result: ParallelismResult) -> str:
    """State the figure, and the cost of a load at it."""
    one, best = result.points[0], widest(result)
    text = (
        f"One thread on {result.tier} has about {say(result, 'parallelism')} outstanding misses: "
        f"with one chain a load takes {say(one, _KEY)}, with {best.chains} concurrent chains "
        f"{say(best, _KEY)} a load"
    )
    if best.chains == max(point.chains for point in result.points):
        return f"{text}. That was the largest number tried: the limit may be higher."
    return f"{text}."


def widest(result: ParallelismResult) -> ChainPoint:
    """Return the point with the least time per load."""
    return min(result.points, key=lambda point: point.latency_ns)


def _figure(result: ParallelismResult) -> Figure:
    from nearfar.report.charts.drawing import draw

    spots = [Spot(p.chains, *p.estimate(_KEY)) for p in result.points]
    ticks = [p.chains for p in result.points if p.chains & (p.chains - 1) == 0]
    chart = line_chart(
        [Line(result.tier, series_color(0), spots, line_kind(result.points, _KEY))],
        Axis("independent chains on one thread", "log", ticks),
        Axis("time per load (ns)", "log"),
    )
    caption = (
        "Median time divided by the loads of all chains; bars are 95 % intervals. A straight "
        "decrease means that each additional chain is free."
    )
    found = origins((p, _KEY) for p in result.points)
    return draw(caption, chart, height=240, narrow_height=220, origins=found)


def _table(result: ParallelismResult) -> Table:
    rows = [[Cell(str(p.chains)), figure_cell(p, _KEY)] for p in result.points]
    return Table(
        ["Chains", "Time per load"], rows, "Latency by chains", frozenset({0, 1}), folded=True
    )


def notes(result: ParallelismResult) -> list[str]:
    """Define the chains and the figure."""
    return [
        f"All chains traverse one region of {format_size(result.region_bytes)}, one line at a "
        "time. "
        "The figure is the latency of one chain over the least at any number of chains, from pairs."
    ]
