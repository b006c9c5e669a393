"""Persistence cost of stores, and stalls when one block is overwritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nearfar.records.depth import PersistenceResult, PersistPoint
from nearfar.records.figures import FigureModel
from nearfar.report.charts.lines import Axis, Line, Spot, line_chart
from nearfar.report.charts.palette import series_color
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell, heated
from nearfar.report.wording import count, format_quantity, line_kind, origin_mark, origins, say
from nearfar.units import LINE_BYTES, format_size

_KEY = "fence_ns"


def section(context: Context) -> Section | None:
    """Return the section, or None if persistence was not measured."""
    result = context.run.sections.persistence
    if result is None or not result.points:
        return None
    tables = [_matrix(result), _costs(result), _overwrite(result)]
    return Section(
        "persistence",
        "Persistence cost",
        finding(result),
        _figures(result),
        [table for table in tables if table.rows],
        notes(result),
    )


def hows(result: PersistenceResult) -> list[str]:
    """Return the instructions in the order of the record."""
    return list(dict.fromkeys(point.how for point in result.points))


def finding(result: PersistenceResult) -> str:
    """State the cheapest way to persist one line, its cost by parts, and overwriting stalls."""
    smallest = min(p.block_bytes * p.blocks_per_fence for p in result.points)
    first = [p for p in result.points if p.block_bytes * p.blocks_per_fence == smallest]
    best = min(first, key=lambda point: point.fence_ns)
    text = (
        f"The cheapest way to make {format_size(smallest)} durable on {result.tier} is {best.how}: "
        f"{say(best, _KEY)} with its fence"
    )
    cost = next((c for c in result.costs if c.how == best.how), None)
    if cost is not None:
        text += f"; each additional line under the same fence adds {say(cost, 'per_line_ns')}"
    return f"{text}. {overwriting(result)}".rstrip()


def overwriting(result: PersistenceResult) -> str:
    """Return a sentence on stalls of one overwritten block; empty if it was not measured."""
    overwrite = result.overwrite
    if overwrite is None:
        return ""
    how = f"{format_size(overwrite.block_bytes)} stored repeatedly with {overwrite.how}"
    block = f"One block of {how}"
    if overwrite.stall_ns == 0:
        return f"{block} never stalled."
    times = f"{say(overwrite, 'latency_ns')} and stalls for {say(overwrite, 'stall_ns')}"
    text = f"{block} takes {times}"
    if overwrite.writes_between == 0:
        return f"{text}, fewer than two times a series."
    between = format_quantity("writes_between", overwrite.writes_between)
    return f"{text} about every {between} stores."


def by_lines(point: PersistPoint) -> bool:
    """Whether a point measures single lines under a fence."""
    return point.block_bytes == LINE_BYTES


def by_size(point: PersistPoint) -> bool:
    """Whether a point measures one block under a fence."""
    return point.blocks_per_fence == 1


def _figures(result: PersistenceResult) -> list[Figure]:
    lines = _figure(
        result,
        "Lines of 64 B under one fence",
        by_lines,
        lambda p: p.blocks_per_fence,
        Axis("lines under a fence", "log", (1, 2, 4, 8, 16, 32)),
    )
    blocks = _figure(
        result,
        "One block under a fence",
        by_size,
        lambda p: p.block_bytes,
        Axis("size of the block", "sizes"),
    )
    return [figure for figure in (lines, blocks) if figure is not None]


def _figure(
    result: PersistenceResult,
    what: str,
    kept: Callable[[PersistPoint], bool],
    place: Callable[[PersistPoint], float],
    axis: Axis,
) -> Figure | None:
    from nearfar.report.charts.drawing import draw

    lines = []
    for index, how in enumerate(hows(result)):
        points = [p for p in result.points if p.how == how and kept(p)]
        spots = [Spot(place(p), *p.estimate(_KEY)) for p in points]
        if len(spots) > 1:
            lines.append(Line(how, series_color(index), spots, line_kind(points, _KEY)))
    if not lines:
        return None
    found = origins((p, _KEY) for p in result.points if kept(p))
    caption = f"{what}; bars are 95 % intervals."
    chart = line_chart(lines, axis, Axis("time with the fence (ns)", "log"))
    return draw(caption, chart, height=260, narrow_height=260, origins=found, half=True)


def column_name(block_bytes: int, blocks_per_fence: int) -> str:
    """Return ``1 line``, ``8 lines``, ``4 KiB``."""
    if block_bytes == LINE_BYTES:
        return count(blocks_per_fence, "line")
    return format_size(block_bytes)


def columns(result: PersistenceResult) -> list[tuple[int, int]]:
    """Return block sizes and blocks under a fence: lines first, then sizes."""
    return sorted({(p.block_bytes, p.blocks_per_fence) for p in result.points})


def _matrix(result: PersistenceResult) -> Table:
    places = {(p.how, p.block_bytes, p.blocks_per_fence): p for p in result.points}
    least = min(p.fence_ns for p in result.points)
    most = max(p.fence_ns for p in result.points)
    rows = []
    for how in hows(result):
        found = [places.get((how, *column)) for column in columns(result)]
        cells = [
            heated(_unmarked(p, _KEY), p.fence_ns, least, most) if p else Cell("–") for p in found
        ]
        rows.append([Cell(how, code=True), *cells])
    heads = ["Instruction", *(column_name(*column) for column in columns(result))]
    origin = _marks(result.points, _KEY)
    caption = f"Time of a fence with the lines under it{origin} (darker is slower)"
    return Table(heads, rows, caption, frozenset(range(1, len(heads))))


def _unmarked(result: FigureModel, key: str) -> Cell:
    """Return value and interval; the caption gives the origin once for all cells."""
    whole = figure_cell(result, key)
    return Cell(whole.text, whole.detail)


def _marks(figures: Iterable[FigureModel], key: str) -> str:
    """Return the origins other than measured, for a caption."""
    marks = {origin_mark(result, key).strip(" ()") for result in figures} - {""}
    return f", {' and '.join(sorted(marks))}" if marks else ""


def _costs(result: PersistenceResult) -> Table:
    rows = [
        [Cell(c.how, code=True), _unmarked(c, "per_fence_ns"), _unmarked(c, "per_line_ns")]
        for c in result.costs
    ]
    return Table(
        ["Instruction", "Per fence", "Per additional line"],
        rows,
        f"A fence and each line under it{_marks(result.costs, 'per_fence_ns')}",
        frozenset({1, 2}),
    )


def _overwrite(result: PersistenceResult) -> Table:
    overwrite = result.overwrite
    heads = ["One block overwritten", "A store", "A stall", "Stores between", "Stalls"]
    if overwrite is None:
        return Table(heads, [])
    row = [
        Cell(f"{overwrite.how}, {format_size(overwrite.block_bytes)}"),
        figure_cell(overwrite, "latency_ns"),
        figure_cell(overwrite, "stall_ns"),
        figure_cell(overwrite, "writes_between"),
        figure_cell(overwrite, "stalls"),
    ]
    return Table(heads, [row], "Overwriting", frozenset({1, 2, 3, 4}), folded=True)


def notes(result: PersistenceResult) -> list[str]:
    """State which memory was emulated, and define a stall."""
    entries = [p.provenance[_KEY] for p in result.points if _KEY in p.provenance]
    lines = [f"{note}." for note in dict.fromkeys(entry.note for entry in entries) if note]
    lines.append(
        "Random blocks are stored, flushed, and made durable by one fence. Per fence and per line: "
        "intercept and slope of a linear fit of the time to the number of cache lines per fence."
    )
    if result.overwrite is not None:
        lines.append(
            "A stall is a store that takes over twenty times the median. On DRAM that emulates "
            "persistent memory it cannot be wear leveling: it is an interruption by the system."
        )
    return lines
