"""Traces in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar._native import TraceCollected, TraceRow, TraceStats

_MAX_SITES = 20


def recorded(file: Path, collected: TraceCollected) -> str:
    """Return one sentence on a new trace, and the next step."""
    from nearfar.units import format_size

    totals = collected["totals"]
    return (
        f"nearfar: {file}: {collected['records']} lines in "
        f"{format_size(collected['size_bytes'])}, of {totals['loads']} loads and "
        f"{totals['stores']} stores in {collected['threads']} threads; not traced: the kernel, "
        f"instruction fetches\n  next: nearfar trace stats {file}"
    )


def statistics(found: TraceStats, file: Path) -> RenderableType:
    """Return the content of a trace, counted: totals, and lines by site."""
    from rich.console import Group
    from rich.text import Text

    from nearfar.tracing.reading import fields

    caches = "  ".join(
        f"{level} {value[0]}" for level in ("l1", "l2", "llc") if (value := fields(found, level))
    )
    head = [
        f"{file}: {' '.join(fields(found, 'program'))}",
        f"after {found['after']}, by {' '.join(fields(found, 'recorder'))}; {caches}",
    ]
    untraced = [f"not traced: {sentence}" for sentence in fields(found, "not_traced")]
    return Group(
        Text("\n".join(head)),
        Text(""),
        _totals(found, file),
        Text(""),
        _sites(found),
        Text(""),
        Text("\n".join(untraced)),
    )


def _totals(found: TraceStats, file: Path) -> RenderableType:
    from nearfar.report.terminal.layout import columns

    rows = [[key.replace("_", " "), str(value)] for key, value in found["totals"].items()]
    rows += [
        ["lines recorded", str(found["records"])],
        ["of them waiting for another", str(found["dependent"])],
        ["bytes a line", f"{file.stat().st_size / max(found['records'], 1):.2f}"],
        ["threads", str(len(found["threads"]))],
    ]
    return columns(["", "count"], rows, 1)


def _sites(found: TraceStats) -> RenderableType:
    from nearfar.report.terminal.layout import columns
    from nearfar.tracing.reading import summaries
    from nearfar.units import format_size

    shown = summaries(found)[:_MAX_SITES]
    rows = [
        [
            one.title(),
            *(str(one.site["records"][kind]) for kind in found["kinds"]),
            str(one.site["allocations"]),
            format_size(one.site["peak_bytes"]),
        ]
        for one in shown
    ]
    heads = [
        "site",
        "loads",
        "stores",
        "prefetches",
        "write-backs",
        "past caches",
        "objects",
        "most at once",
    ]
    return columns(heads, rows, 1)


def lines(first: int, rows: Sequence[TraceRow]) -> RenderableType:
    """Return lines of a trace, the first of which has the number ``first``."""
    from nearfar.report.terminal.layout import columns
    from nearfar.tracing.reading import place
    from nearfar.verify.symbols import source_lines

    places = {place(row["frame"]) for row in rows}
    sources = source_lines(sorted(places - {""}))
    heads = ["line", "kind", "address", "in", "thread", "instruction", "code", "waits for"]
    return columns(heads, [[str(first + i), *_row(row, sources)] for i, row in enumerate(rows)], 0)


def _row(row: TraceRow, lines: dict[str, str]) -> list[str]:
    from nearfar.tracing.reading import place

    code = place(row["frame"])
    unnamed = hex(row["code"]) if row["code"] else ""
    named = Path(lines.get(code) or code).name or unnamed
    within = row["address"] - row["object_address"]
    inside = f"{row['site_kind']} {row['object']} {within:+#x}" if row["object"] else "unknown"
    waits = f"{row['depends']} back" if row["depends"] else ""
    return [
        row["kind"].replace("_", "-"),
        hex(row["address"]),
        inside,
        str(row["thread"]),
        str(row["instructions"]),
        named,
        waits,
    ]
