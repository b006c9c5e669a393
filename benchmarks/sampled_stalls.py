"""Draw what allocation sites cost in far memory, sampled next to emulated.

Usage: sampled_stalls.py DATA.json FILE.svg

``benchmarks/sampled_stalls`` has the programs and ``data.json``: from the answers of ``nearfar
advise`` and ``nearfar advise --emulate``, with date, machine and commands. The picture shows the
added CPU time of each site as a percentage of the CPU time of its run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LABELS, _WIDTH, _ROW, _BAR, _TOP = 230, 420, 40, 13, 70
_STYLE = """\
text { font: 12px sans-serif; fill: #222 }
.title { font-weight: bold }
.number { font-size: 11px }
.emulated { fill: #e8eef7; stroke: #6b84a8 }
.sampled { fill: #2f5d9b; stroke: #2f5d9b }
path { stroke: #6b84a8; stroke-opacity: .7 }
svg { background: #fff }"""
_WAYS = ("emulated", "sampled")


def _rows(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """Each site with its percentages of the CPU time."""
    for program in data["programs"]:
        for site in program["sites"]:
            yield (
                f"{program['program']}: {site['site']}",
                {w: 100 * site[f"{w}_s"] / program[w]["cpu_near_s"] for w in _WAYS},
            )


def _row(number: int, label: str, found: dict[str, float], scale: float) -> Iterator[str]:
    """The label and two bars of a site."""
    top = _TOP + number * _ROW
    yield f'<text x="{_LABELS - 10}" y="{top + 19}" text-anchor="end">{label}</text>'
    for i, way in enumerate(_WAYS):
        y, width = top + 2 + i * (_BAR + 2), found[way] * scale
        yield (
            f'<rect class="{way}" x="{_LABELS}" y="{y}" width="{width:.1f}" height="{_BAR}">'
            f"<title>{label}, {way}: {found[way]:.2f} %</title></rect>"
        )
        text = f"{found[way]:.1f} %"
        yield f'<text class="number" x="{_LABELS + width + 5:.1f}" y="{y + 11}">{text}</text>'


def picture(data: dict[str, Any]) -> str:
    """The picture as SVG."""
    rows = list(_rows(data))
    scale = _WIDTH / max(max(found.values()) for _, found in rows)
    width, height = _LABELS + _WIDTH + 70, _TOP + len(rows) * _ROW + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        f"<style>\n{_STYLE}\n</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text class="title" x="10" y="22">Added CPU time if a site is in far memory '
        f"({data['far']}; near {data['near']}), % of the run</text>",
    ]
    for i, way in enumerate(_WAYS):
        x = _LABELS + i * 110
        parts.append(f'<rect class="{way}" x="{x}" y="38" width="22" height="{_BAR}"/>')
        parts.append(f'<text x="{x + 30}" y="49">{way}</text>')
    for number, (label, found) in enumerate(rows):
        parts += _row(number, label, found, scale)
    bottom = _TOP + len(rows) * _ROW
    parts += [f'<path d="M{_LABELS} {_TOP - 4}V{bottom}"/>', "</svg>\n"]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(picture(json.loads(Path(sys.argv[1]).read_text())))
