"""Where sites are, in words: a source line where debug information tells it, or object and offset.

Of a call chain, the innermost frame with a source line speaks for the site, since what lies in
libraries without one (allocators' wrappers, C++'s) says little.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nearfar.place.sites import Frame, Site
from nearfar.verify.symbols import source_lines

_FIXED = {
    "stack": "stack", "statics": "globals", "mapping": "mapped memory", "code": "code",
    "unknown": "unknown", "heap": "heap, no call site",
}  # fmt: skip


def labels_of(sites: Iterable[Site]) -> dict[int, str]:
    """A label for each site by number."""
    told = list(sites)
    heap = [site for site in told if site.kind == "heap"]
    lines = source_lines({frame.place() for site in heap for frame in site.frames})
    return {site.number: _label(site, lines) for site in told}


def _label(site: Site, lines: dict[str, str]) -> str:
    if not site.frames:
        return _FIXED[site.kind]
    told = next((lines[f.place()] for f in site.frames if f.place() in lines), None)
    if site.kind == "statics":
        return f"globals of {_name(site.frames[0])}"
    return _short(told) if told else f"{_name(site.frames[0])}+{site.frames[0].offset:#x}"


def _name(frame: Frame) -> str:
    return Path(frame.path).name or "unknown code"


def _short(line: str) -> str:
    """FILE:LINE without folders."""
    return line.rpartition("/")[2]
