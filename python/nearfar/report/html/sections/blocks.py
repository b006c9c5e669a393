"""Latency by block size."""

from __future__ import annotations

from nearfar.records.depth import BlocksResult
from nearfar.report.charts.lines import Axis, Line, Spot, line_chart
from nearfar.report.charts.palette import series_color
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import line_kind, origins, say
from nearfar.units import format_size

_KEY = "latency_ns"


def section(context: Context) -> Section | None:
    """Return the section, or None if block sizes were not measured."""
    result = context.run.sections.blocks
    if result is None or not result.points:
        return None
    return Section(
        "blocks",
        "Latency by block size",
        finding(result),
        [_figure(result)],
        [_table(result)],
        notes(result),
    )


def finding(result: BlocksResult) -> str:
    """Compare the smallest block with the largest."""
    first, last = result.points[0], result.points[-1]
    text = (
        f"On {result.tier}, a line costs {say(first, _KEY)} in random blocks of "
        f"{format_size(first.block_bytes)}"
    )
    if last is first:
        return f"{text}."
    return f"{text}, and {say(last, _KEY)} in blocks of {format_size(last.block_bytes)}."


def _figure(result: BlocksResult) -> Figure:
    from nearfar.report.charts.drawing import draw

    spots = [Spot(p.block_bytes, *p.estimate(_KEY)) for p in result.points]
    chart = line_chart(
        [Line(result.tier, series_color(0), spots, line_kind(result.points, _KEY))],
        Axis("size of a block", "sizes"),
        Axis("latency of a line (ns)", "log"),
    )
    caption = "Median latency of a line; bars are 95 % intervals."
    found = origins((p, _KEY) for p in result.points)
    return draw(caption, chart, height=220, narrow_height=200, origins=found)


def _table(result: BlocksResult) -> Table:
    rows = [[Cell(format_size(p.block_bytes)), figure_cell(p, _KEY)] for p in result.points]
    return Table(
        ["Block", "Latency of a line"],
        rows,
        "Latency by block size",
        frozenset({0, 1}),
        folded=True,
    )


def notes(result: BlocksResult) -> list[str]:
    """Explain a decrease over block sizes."""
    return [
        f"Blocks in a random order over {format_size(result.region_bytes)}, the lines of each in "
        "turn, one load at a time. Larger blocks are cheaper if prefetchers, open rows or a "
        "device with a larger access unit fetch the next line along."
    ]
