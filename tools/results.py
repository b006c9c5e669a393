"""Write the pages of ``benchmarks/results`` from the files in its folder ``raw``.

Usage: results.py [--check]. With ``--check`` nothing is written; the exit code is 1 if a page
differs from what the files give.

A file of ``raw`` is one area: ``title``, ``machine``, ``setup``, ``claims`` (``claim``, ``target``,
``value``, ``verdict``, ``command``, ``date``, ``commit``, and ``table``, the title of the table
that has its figures) and ``tables`` (``title``, ``command``, ``date``, ``commit``, ``setup``,
``columns``, ``rows``, ``conclusion``). A verdict begins with "reached" or "missed"; anything after
it is the reason.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"

_HEAD = """\
# Results

What nearfar claims, and whether it was reached: misses first. Each area has a page with setup,
tables and conclusions; [history.md](history.md) has superseded runs and what was learned from them.
All pages but that one are written by `tools/results.py` from `raw/*.json`; the date is that of the
commit that recorded the figure.

"""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _anchor(title: str) -> str:
    """The link to a table of a page, as forges derive it from the heading; empty without one."""
    words = re.sub(r"[^\w\- ]", "", title.lower())
    return f"#{words.replace(' ', '-')}" if title else ""


def page(area: dict[str, Any]) -> str:
    """The page of one area."""
    lines = [f"# {area['title']}", "", area["setup"], "", f"Machine: {area['machine']}"]
    for table in area["tables"]:
        recorded = f"recorded {table['date']} in {table['commit']}"
        lines += ["", f"## {table['title']}", "", f"`{table['command']}`, {recorded}", ""]
        lines += [table["setup"], "", *_table(table["columns"], table["rows"])]
        for sentence in table["conclusion"]:
            lines += ["", sentence]
    return "\n".join(lines) + "\n"


def overview(areas: dict[str, dict[str, Any]]) -> str:
    """The page of all claims, misses first."""
    rows = [
        (
            claim["claim"],
            claim["target"],
            claim["value"],
            claim["verdict"],
            f"{claim['date']}, {claim['commit']}",
            f"`{claim['command']}`",
            f"[{name}]({name}.md{_anchor(claim.get('table', ''))})",
        )
        for name, area in areas.items()
        for claim in area["claims"]
    ]
    rows.sort(key=lambda row: not row[3].startswith("missed"))
    heads = ("claim", "target", "value", "verdict", "date, commit", "command", "page")
    return _HEAD + "\n".join(_table(heads, rows)) + "\n"


def pages() -> dict[str, str]:
    """All pages by file name."""
    areas = {file.stem: json.loads(file.read_text()) for file in sorted(RESULTS.glob("raw/*.json"))}
    return {
        "README.md": overview(areas),
        **{f"{name}.md": page(area) for name, area in areas.items()},
    }


def main(arguments: Sequence[str]) -> int:
    """Write, or compare with ``--check``."""
    stale = [
        name
        for name, text in pages().items()
        if not (RESULTS / name).exists() or (RESULTS / name).read_text() != text
    ]
    if "--check" in arguments:
        for name in stale:
            print(f"{name} differs from raw/*.json: run tools/results.py", file=sys.stderr)
        return bool(stale)
    for name in stale:
        (RESULTS / name).write_text(pages()[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
