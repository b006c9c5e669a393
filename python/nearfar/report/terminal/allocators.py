"""Tables of allocators."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.allocators import MallocResult, MallocRow
from nearfar.report.html.sections import malloc as section
from nearfar.report.terminal.layout import block, columns
from nearfar.report.wording import format_quantity, origins


def malloc(result: MallocResult) -> RenderableType:
    """Return one table per test: times with their ratios to glibc, and memory."""
    parts: list[RenderableType] = []
    for test in section.tests_of(result):
        rows = [row for row in result.rows if row.test == test]
        parts += [Text(f"{test}: {section.work(rows, test)}", style="bold"), _table(rows), Text("")]
    found = origins((row, "cpu_time_s") for row in result.rows)
    notes = section.notes(result)
    if any(row.oversubscribed for row in result.rows):
        notes.append("* More threads than CPUs.")
    finding = section.finding(result)
    return block("Allocators", finding, found, Group(*parts[:-1]), notes)


def _table(rows: list[MallocRow]) -> RenderableType:
    cells = [
        [
            row.allocator,
            f"{row.threads} *" if row.oversubscribed else str(row.threads),
            _said(row, "cpu_time_s"),
            _said(row, "ratio_to_glibc"),
            _said(row, "wall_time_s"),
            _said(row, "wall_ratio_to_glibc"),
            _said(row, "peak_memory_bytes"),
            _said(row, "settled_memory_bytes"),
        ]
        for row in rows
    ]
    heads = ["Allocator", "Threads", "CPU", "/ glibc", "Wall", "/ glibc", "Peak", "After 1 s"]
    return columns(heads, cells, 1)


def _said(row: MallocRow, key: str) -> str:
    value = getattr(row, key)
    return "–" if value is None else format_quantity(key, value)
