"""``nearfar trace show T``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.cli.trace.stats import File

if TYPE_CHECKING:
    from nearfar._native import TraceRow


def show(
    file: File,
    first: Annotated[
        int,
        typer.Option(
            "--first", metavar="N", min=0, max=ranges.MOST_COUNT, help="Number of the first line."
        ),
    ] = 0,
    count: Annotated[
        int,
        typer.Option("-n", "--count", metavar="N", min=1, max=1_000_000, help="Number of lines."),
    ] = 20,
    json: flags.Json = None,
) -> None:
    """Show lines of a trace: kind, address, object, code, and the load that each depends on.

    Example: `nearfar trace show sort.trace --first 1000000 -n 50`
    """
    from json import dumps

    from nearfar._native import trace_show
    from nearfar.report.console import note, print_result, write_json
    from nearfar.report.terminal.layout import columns
    from nearfar.tracing.reading import place, plan_frame
    from nearfar.verify.symbols import source_lines

    found = trace_show(str(file), first, count)
    if found["ending"] and len(found["rows"]) < count:
        note(f"nearfar: {file}: {found['ending']}")
    if json is not None:
        kept = [
            {
                key: plan_frame(value) if key.endswith("frame") else value  # type: ignore[arg-type]
                for key, value in row.items()
            }
            | {"number": first + i}
            for i, row in enumerate(found["rows"])
        ]
        write_json(json, dumps({"verb": "trace show", "file": str(file), "lines": kept}, indent=1))
    if json != "-":
        places = {place(row["frame"]) for row in found["rows"]}
        lines = source_lines(sorted(places - {""}))
        rows = [[str(first + i), *_row(row, lines)] for i, row in enumerate(found["rows"])]
        heads = ["line", "kind", "address", "in", "thread", "instruction", "code", "waits for"]
        print_result(columns(heads, rows, 0))


def _row(row: TraceRow, lines: dict[str, str]) -> list[str]:
    from pathlib import Path

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
