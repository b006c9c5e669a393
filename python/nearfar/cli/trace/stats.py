"""``nearfar trace stats T``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar._native import TraceStats

File = Annotated[Path, typer.Argument(metavar="T", help="Trace.", show_default=False)]

_MOST_SITES = 20


def stats(file: File, json: flags.Json = None) -> None:
    """Count the content of a trace: accesses, misses of each level, lines by site.

    A truncated or damaged trace is read up to the damage, and the damage is reported.

    Example: `nearfar trace stats sort.trace`, `nearfar trace stats sort.trace --json -`
    """
    from json import dumps

    from nearfar._native import trace_stats
    from nearfar.report.console import note, print_result, write_json
    from nearfar.tracing.reading import document
    from nearfar.tracing.recording import ending_of

    found = trace_stats(str(file))
    if found["ending"]:
        note(f"nearfar: {file}: {found['ending']}")
    if found["exit_code"]:
        note(f"nearfar: {file}: the program {ending_of(found['exit_code'])}")
    if json is not None:
        write_json(json, dumps(document(found, file), indent=1))
    if json != "-":
        print_result(_shown(found, file))


def _shown(found: TraceStats, file: Path) -> RenderableType:
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

    shown = summaries(found)[:_MOST_SITES]
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
