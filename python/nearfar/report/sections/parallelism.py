"""What a load costs with several independent chases side by side on one thread."""

from __future__ import annotations

from nearfar.records.depth import ChainPoint, ParallelismResult
from nearfar.report.lines import Axis, Line, Spot, line_chart
from nearfar.report.palette import series_colour
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import line_kind, origins, say
from nearfar.units import format_size

#: Where it stands on the page.
PLACE = 60

_KEY = "latency_ns"


def section(context: Context) -> Section | None:
    """The section, or None where parallelism was not measured."""
    result = context.run.sections.parallelism
    if result is None or not result.points:
        return None
    return Section(
        "parallelism", "Loads side by side", finding(result), [_figure(result)], [_table(result)],
        notes(result),
    )  # fmt: skip


def finding(result: ParallelismResult) -> str:
    """The figure, and what a load costs at it."""
    one, best = result.points[0], widest(result)
    text = (
        f"One thread on {result.tier} keeps about {say(result, 'parallelism')} loads under way: "
        f"alone a load takes {say(one, _KEY)}, with {best.chains} chains side by side "
        f"{say(best, _KEY)} a load"
    )
    if best.chains == max(point.chains for point in result.points):
        return f"{text}. That was the largest number tried: the limit may lie higher."
    return f"{text}."


def widest(result: ParallelismResult) -> ChainPoint:
    """The point where a load costs least."""
    return min(result.points, key=lambda point: point.latency_ns)


def _figure(result: ParallelismResult) -> Figure:
    from nearfar.report.drawing import draw

    spots = [Spot(p.chains, *p.estimate(_KEY)) for p in result.points]
    ticks = [p.chains for p in result.points if p.chains & (p.chains - 1) == 0]
    chart = line_chart(
        [Line(result.tier, series_colour(0), spots, line_kind(result.points, _KEY))],
        Axis("independent chains on one thread", "log", ticks),
        Axis("time over all loads (ns)", "log"),
    )  # fmt: skip
    caption = (
        "Median time over all loads of all chains; bars are 95 % intervals. A straight fall means "
        "that each chain more is free."
    )
    found = origins((p, _KEY) for p in result.points)
    return draw(caption, chart, height=240, narrow_height=220, origins=found)


def _table(result: ParallelismResult) -> Table:
    rows = [[Cell(str(p.chains)), figure_cell(p, _KEY)] for p in result.points]
    return Table(
        ["Chains", "Time over loads"], rows, "Latency by chains", frozenset({0, 1}), folded=True
    )


def notes(result: ParallelismResult) -> list[str]:
    """Where the chains walked, and what the figure is."""
    return [
        f"All chains walk one region of {format_size(result.region_bytes)}, one line at a time. "
        "The figure is the latency of one chain over the least at any number of chains, from pairs."
    ]
