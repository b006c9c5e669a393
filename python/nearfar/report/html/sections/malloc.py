"""Allocators at the malloc tests."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.records.allocators import MallocResult, MallocRow
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.html.sections._threads import OVERSUBSCRIBED
from nearfar.report.wording import count, format_quantity, origin_mark, origins, say

GLIBC = "glibc"
_WORK = {
    "small": "blocks of 1–512 B, then all freed",
    "large": "blocks of 1–524287 B, then all freed",
    "free-loop": "blocks of 1–524287 B, all freed, ten rounds",
    "half-free-loop": "blocks of 1–524287 B, the even ones freed, ten rounds; then the rest",
    "warm": "times freeing one of 4096 blocks of 1–512 B and allocating another",
}


def section(context: Context) -> Section | None:
    """Return the section, or None if no allocator was tested."""
    result = context.run.sections.malloc
    if result is None:
        return None
    return Section(
        "malloc",
        "Allocators",
        finding(result),
        _figures(result),
        [_table(result), _libraries(result)],
        notes(result),
    )


def finding(result: MallocResult) -> str:
    """State the time of the top row, and its ratio to glibc."""
    text = (
        f"Test {result.test} takes {result.allocator} {say(result, 'cpu_time_s')} of CPU "
        f"time on {count(result.threads, 'thread')}"
    )
    if result.ratio_to_glibc is None:
        return f"{text}."
    return f"{text}, {say(result, 'ratio_to_glibc')} what glibc's malloc takes."


def tests_of(result: MallocResult) -> list[str]:
    """Return the tests of a result, in its order."""
    return list(dict.fromkeys(row.test for row in result.rows))


def work(rows: Sequence[MallocRow], test: str) -> str:
    """Return a description of a test, with its number of blocks."""
    blocks = next(row.count for row in rows if row.test == test)
    return f"{blocks:,}".replace(",", "\u202f") + f" {_WORK[test]}"


def _figures(result: MallocResult) -> list[Figure]:
    return [_figure([row for row in result.rows if row.test == test]) for test in tests_of(result)]


def _figure(rows: Sequence[MallocRow]) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    test = rows[0].test
    caption = f"{test}: {work(rows, test)}. Wall time; bars are 95 % intervals."
    if any(row.oversubscribed for row in rows):
        caption = f"{caption} {OVERSUBSCRIBED}"
    if len({row.threads for row in rows}) > 1:
        return _scaling_figure(rows, caption)
    bars = [
        Bar(
            f"{row.allocator}{origin_mark(row, 'wall_time_s')}",
            row.allocator,
            *row.estimate("wall_time_s"),
            format_quantity("wall_time_s", row.wall_time_s),
            row.oversubscribed,
        )
        for row in rows
    ]
    found = origins((row, "wall_time_s") for row in rows)
    return draw(caption, row_chart(bars, "wall time (s)"), height=30 * len(bars), origins=found)


def _scaling_figure(rows: Sequence[MallocRow], caption: str) -> Figure:
    """Return wall time by threads."""
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Dot, scaling_chart

    dots = [
        Dot(
            row.allocator,
            row.threads,
            *row.estimate("wall_time_s"),
            row.oversubscribed,
            bool(origin_mark(row, "wall_time_s")),
        )
        for row in rows
    ]
    return draw(
        caption,
        scaling_chart(dots, "wall time (s)"),
        height=260,
        narrow_height=220,
        origins=origins((row, "wall_time_s") for row in rows),
    )


def _table(result: MallocResult) -> Table:
    rows = [
        [
            Cell(row.test),
            Cell(row.allocator, code=True),
            Cell(str(row.threads), "shared CPUs" if row.oversubscribed else ""),
            figure_cell(row, "cpu_time_s"),
            figure_cell(row, "ratio_to_glibc"),
            figure_cell(row, "wall_time_s"),
            figure_cell(row, "wall_ratio_to_glibc"),
            figure_cell(row, "peak_memory_bytes"),
            figure_cell(row, "settled_memory_bytes"),
        ]
        for row in result.rows
    ]
    times = ["CPU time", "over glibc's", "Wall time", "over glibc's"]
    heads = ["Test", "Allocator", "Threads", *times, "Peak memory", "After 1 s"]
    return Table(heads, rows, "Times and memory", frozenset(range(2, 9)), folded=True)


def _libraries(result: MallocResult) -> Table:
    rows = [[Cell(a.allocator, code=True), Cell(a.library, code=True)] for a in result.allocators]
    return Table(["Allocator", "Code loaded from"], rows, "Libraries", folded=True)


def notes(result: MallocResult) -> list[str]:
    """State what the times and the memory include, and the time per pair of the warm loop."""
    lines = [
        "CPU time is of all threads, including the allocator's own. Each test ran in a fresh "
        "process, and allocators alternated; ratios are medians over adjacent runs.",
        "Memory is resident memory in excess of that before the test; settled memory is a second "
        "after "
        "the last free.",
    ]
    pairs = [
        f"{row.allocator} {say(row, 'pair_time_ns')}"
        for row in result.rows
        if row.test == "warm" and row.threads == 1
    ]
    if pairs:
        lines.append(f"A warm pair of free and malloc takes one thread: {', '.join(pairs)}.")
    return lines
