"""Pools in the terminal, as ``nearfar pool`` finds them in their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from nearfar._native import PoolExamination, PoolFinding, PoolLeaks

_MAX_TYPES = 20


def _plain(lines: Sequence[str]) -> Text:
    """Return lines verbatim: a layout's name may contain what rich takes for markup."""
    return Text("\n".join(lines), no_wrap=True, overflow="ignore")


def _finding_lines(findings: Sequence[PoolFinding]) -> list[str]:
    """Return one line per finding: ``damage  lane  at 0x2040  …``."""
    return [
        f"{one['severity']:<6} {one['part']:<10} at {one['offset']:#x}: {one['what']}"
        for one in findings
    ]


def check(facts: PoolExamination, file: Path) -> Text:
    """Return the findings, and whether the pool is consistent."""
    lines = _finding_lines(facts["findings"])
    missing = facts["damage"] + facts["notes"] - len(lines)
    if missing:
        lines.append(f"and {missing} more")
    end = "damaged: do not open it" if facts["damage"] else "consistent"
    return _plain([*lines, f"{file}: {end} ({_examined(facts)} looked at)"])


def _examined(facts: PoolExamination) -> str:
    """Return the number of objects; those of the typed layer are within libpmemobj's."""
    objects, typed = facts["all_objects"]["objects"], facts["typed"]
    if not (typed["is_typed"] and typed["redo"]):
        return f"{objects} objects"
    return f"{objects} objects of libpmemobj with {typed['objects']} typed objects in them"


def info(facts: PoolExamination, file: Path) -> list[RenderableType]:
    """Return the parts of a pool, and the findings."""
    return [_plain(_head(facts, file)), _body(facts), _plain(_finding_lines(facts["findings"]))]


def shredded(file: Path, size_bytes: int, not_reached: Sequence[str]) -> Text:
    """Return what was overwritten, and where old data may remain."""
    return _plain(
        [
            f"{file}: {size_bytes} bytes overwritten, flushed, read again, compared",
            "What this cannot reach:",
            *(f"  - {one}" for one in not_reached),
            f"The file is still there: rm {file}",
        ]
    )


def leaks(facts: PoolLeaks, file: Path, method: str) -> Text:
    """Return lost objects by type, and the verdict."""
    from nearfar.units import format_size

    lines = []
    for lost in sorted(facts["types"], key=lambda one: -one["block_bytes"]):
        places = ", ".join(f"{offset:#x}" for offset in lost["examples"])
        lines.append(
            f"type {lost['name'] or lost['type']}: {lost['objects']} lost, "
            f"{format_size(lost['block_bytes'])}; "
            f"{lost['heads']} of them not reachable from another lost one; at {places}"
            + (", …" if lost["objects"] > len(lost["examples"]) else "")
        )
    size = format_size(facts["lost_bytes"])
    verdict = f"{facts['lost']} of {facts['objects']} objects are lost ({size})"
    if not facts["lost"]:
        verdict = f"all {facts['objects']} objects can be reached"
    return _plain([*lines, f"{file}: {verdict}", method])


def _head(facts: PoolExamination, file: Path) -> list[str]:
    from datetime import UTC, datetime

    from nearfar.units import format_size

    header, descriptor = facts["header"], facts["descriptor"]
    try:
        made = f"{datetime.fromtimestamp(header['created_s'], UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        made = f"{header['created_s']} s after 1970"
    root = f"{format_size(descriptor['root_bytes'])} at {descriptor['root_offset']:#x}"
    heap = f"{format_size(descriptor['heap_bytes'])} at {descriptor['heap_offset']:#x}"
    lines = [
        f"{file}: {format_size(facts['size_bytes'])}, format {header['major']}, made {made}",
        f"layout  {descriptor['layout'] or '(none)'}",
        f"uuid    {header['uuid']}, of its set {header['set_uuid']}",
        f"lanes   {descriptor['lanes']} at {descriptor['lanes_offset']:#x}",
        f"heap    {heap}",
        f"root    {root if descriptor['root_offset'] else '(none)'}",
    ]
    return [*lines, *_typed(facts)]


def _typed(facts: PoolExamination) -> list[str]:
    """Return lines on nearfar's own layers, if the pool is one of theirs."""
    typed = facts["typed"]
    if not typed["is_typed"]:
        return ["owner   nearfar"] if typed["is_nearfar"] else []
    names = ", ".join(one["name"] for one in typed["types"])
    path = "redo" if typed["redo"] else "undo"
    lines = [f"owner   nearfar's typed layer, {path} path; types: {names}"]
    if typed["redo"]:
        lines.append(
            f"objects {typed['objects']} in {typed['chunks']} chunks; "
            f"{typed['records']} records of the log to be written back when the pool is opened"
        )
    return lines


def _body(facts: PoolExamination) -> RenderableType:
    from rich.console import Group

    parts = [_logs(facts), _chunks(facts), _runs(facts), _types(facts)]
    return Group(*(line for part in parts for line in ("", part)))


def _titled(title: str, heads: list[str], rows: list[list[str]]) -> Table:
    from nearfar.report.terminal.layout import columns

    table = columns(heads, rows, first_figure=1)
    table.title, table.title_justify, table.title_style = title, "left", "bold"
    return table


def _logs(facts: PoolExamination) -> Table:
    names = {"internal": "internal redo", "external": "external redo", "undo": "undo"}
    rows = [
        [names[kind], *(str(log[key]) for key in ("used", "pending", "entries", "extensions"))]
        for kind, log in facts["logs"].items()
    ]
    return _titled(
        "Logs", ["log", "hold entries", "to be replayed", "their entries", "extensions"], rows
    )


def _chunks(facts: PoolExamination) -> Table:
    heap = facts["heap"]
    row = [f"{heap['zones_in_use']} of {heap['zones']} zones"]
    row += [str(heap[key]) for key in ("chunks", "free_chunks", "run_chunks", "large_chunks")]
    return _titled("Chunks of 256 KiB", ["", "all", "free", "in runs", "of large objects"], [row])


def _runs(facts: PoolExamination) -> Table:
    from nearfar.units import format_size

    rows = [
        [
            format_size(run["block_bytes"]),
            str(run["runs"]),
            str(run["chunks"]),
            str(run["blocks"]),
            str(run["used_blocks"]),
            f"{100 * run['used_blocks'] / run['blocks']:.0f} %",
        ]
        for run in sorted(facts["runs"], key=lambda run: run["block_bytes"])
    ]
    return _titled("Runs", ["block", "runs", "chunks", "blocks", "in use", "use"], rows)


def _types(facts: PoolExamination) -> Table:
    from nearfar.units import format_size

    by_size = sorted(facts["types"], key=lambda one: -one["block_bytes"])
    shown = [(str(one["type"]), one) for one in by_size[:_MAX_TYPES]]
    rest = len(by_size) - len(shown)
    counts = [(name, one) for name, one in shown if one["objects"]]
    counts.append(("the library's own", facts["internal_objects"]))  # type: ignore[arg-type]
    rows = [
        [
            name,
            str(one["objects"]),
            format_size(one["block_bytes"]),
            format_size(one["smallest_bytes"]),
            format_size(one["largest_bytes"]),
        ]
        for name, one in counts
    ]
    more = f" ({rest} more types in --json)" if rest > 0 else ""
    title = f"Objects of libpmemobj{more}"
    return _titled(title, ["type number", "objects", "taken", "smallest", "largest"], rows)
