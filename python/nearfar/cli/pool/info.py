"""``nearfar pool info``: show the content of a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.cli.flags import Json
from nearfar.cli.pool._shared import File

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType
    from rich.table import Table

    from nearfar._native import PoolExamination

_MOST_TYPES = 20


def info(file: File, json: Json = None) -> int:
    """Show a libpmemobj pool: header, lanes and logs, chunks, runs, objects by type and size.

    Nothing is opened or written. Damaged parts are omitted and reported, with exit code 1. Objects
    are counted as recovery would leave them.

    Example: `nearfar pool info /mnt/pmem/data.pool`, `nearfar pool info data.pool --json -`
    """
    from json import dumps

    from nearfar._native import pool_examine
    from nearfar.cli.pool._shared import finding_lines, print_plain, require_pool, verdict
    from nearfar.report.console import print_result, write_json

    facts = pool_examine(str(file))
    require_pool(facts, file)
    if json is not None:
        write_json(json, dumps(_document(facts, file), indent=1))
    if json != "-":
        print_plain(_head(facts, file))
        print_result(_body(facts))
        print_plain(finding_lines(facts["findings"]))
    return verdict(facts)


def _document(facts: PoolExamination, file: Path) -> dict[str, object]:
    from nearfar.cli.pool._shared import document

    counts = document(
        facts,
        file,
        objects=facts["all_objects"]["objects"],
        object_block_bytes=facts["all_objects"]["block_bytes"],
        heap_bytes=facts["descriptor"]["heap_bytes"],
    )
    parts = ("header", "descriptor", "typed", "logs", "heap", "runs", "types", "further_types")
    return {**counts, **{part: facts[part] for part in (*parts, "internal_objects")}}  # type: ignore[literal-required]


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
            f"{typed['records']} records of the log not written back yet"
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
    shown = [(str(one["type"]), one) for one in by_size[:_MOST_TYPES]]
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
    title = "Objects" if rest <= 0 else f"Objects ({rest} more types in --json)"
    return _titled(title, ["type number", "objects", "taken", "smallest", "largest"], rows)
