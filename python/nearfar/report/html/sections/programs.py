"""The programs of the Seoul thesis, by size and allocator of their arrays."""

from __future__ import annotations

from nearfar.records.programs import ProgramResult
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity, origin_mark, origins, say

NAMES = {
    "quick": "Quicksort",
    "merge": "Mergesort",
    "lbm": "Lattice Boltzmann (D3Q19)",
    "matmul": "Matrix multiplication",
}
_SIZES = {
    "quick": "{n:,} integers",
    "merge": "{n:,} integers",
    "lbm": "{n}³ cells",
    "matmul": "{n} × {n} doubles",
}
COLUMNS = {"time_s": "Time", "cpu_time_s": "CPU", "ratio_to_malloc": "/ malloc"}


def section(context: Context) -> Section | None:
    """Return the section, or None if no program was run."""
    result = context.run.sections.program
    if result is None:
        return None
    figures = [_figure(result)] if len({row.n for row in result.rows}) > 1 else []
    return Section(
        "program", NAMES[result.program], finding(result), figures, [_table(result)], notes(result)
    )


def size(result: ProgramResult, n: int) -> str:
    """Return a size in words."""
    return _SIZES[result.program].format(n=n)


def finding(result: ProgramResult) -> str:
    """State the time at the largest size."""
    return (
        f"{NAMES[result.program]} of {size(result, result.n)} takes {say(result, 'time_s')} with "
        f"arrays from {result.allocator}."
    )


def _table(result: ProgramResult) -> Table:
    rows = [
        [
            Cell(size(result, row.n)),
            Cell(row.allocator),
            *(figure_cell(row, key) for key in COLUMNS),
        ]
        for row in result.rows
    ]
    heads = ["Size", "Arrays", *COLUMNS.values()]
    return Table(heads, rows, "By size", frozenset({2, 3, 4}))


def _figure(result: ProgramResult) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    bars = [
        Bar(
            f"{size(result, row.n)}, {row.allocator}",
            row.allocator,
            *row.estimate("time_s"),
            f"{format_quantity('time_s', row.time_s)}{origin_mark(row, 'time_s')}",
        )
        for row in result.rows
    ]
    chart = row_chart(bars, "time, logarithmic (s)", log=True)
    found = origins((row, "time_s") for row in result.rows)
    return draw("Time by size.", chart, height=26 * len(bars), origins=found)


def notes(result: ProgramResult) -> list[str]:
    """State how the program was run."""
    lines = ["Each run is a separate process; arrays are filled before and checked after timing."]
    if result.program == "lbm":
        lines.append(f"{result.steps} steps a run.")
    return lines
