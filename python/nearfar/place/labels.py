"""Where sites are, in words: a source line where debug information tells it, or object and offset.

Of a call chain, the innermost frame with a source line speaks for the site, since what lies in
libraries without one (allocators' wrappers, C++'s) says little. Where several sites share it, which
are those behind a wrapper of the program's own, callers are put before it as far as they tell the
sites apart: ``FILE:LINE>LINE``, ``FILE:LINE>FILE:LINE``. The dynamic loader calls no program: where
it seems to, the frame pointer led astray in code that keeps none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from nearfar.place.sites import Frame, Site
from nearfar.verify.symbols import source_lines

_FIXED = {
    "stack": "stack", "statics": "globals", "mapping": "mapped memory", "code": "code",
    "unknown": "unknown", "heap": "heap, no call site",
}  # fmt: skip
#: Lines of a label at most.
_DEEPEST = 3


def labels_of(sites: Iterable[Site]) -> dict[int, str]:
    """A label for each site by number."""
    told = list(sites)
    heap = [site for site in told if site.kind == "heap"]
    lines = source_lines({frame.place() for site in heap for frame in site.frames})
    labels = {site.number: _label(site, lines, 1) for site in told}
    for depth in range(2, _DEEPEST + 1):
        often = Counter(labels[site.number] for site in heap)
        for site in heap:
            if often[labels[site.number]] > 1:
                labels[site.number] = _label(site, lines, depth)
    return labels


def _label(site: Site, lines: dict[str, str], depth: int) -> str:
    """By so many frames with a source line at most, the innermost first."""
    if not site.frames:
        return _FIXED[site.kind]
    if site.kind == "statics":
        return f"globals of {_name(site.frames[0])}"
    callers = [f for f in site.frames if f is site.frames[0] or not _is_loader(f)]
    told = [_short(lines[f.place()]) for f in callers if f.place() in lines][:depth]
    if not told:
        return f"{_name(site.frames[0])}+{site.frames[0].offset:#x}"
    label, file = told[-1], told[-1].rpartition(":")[0]
    for inner in reversed(told[:-1]):
        inner_file, _, line = inner.rpartition(":")
        label += f">{line if inner_file == file else inner}"
        file = inner_file
    return label


def _name(frame: Frame) -> str:
    return Path(frame.path).name or "unknown code"


def _is_loader(frame: Frame) -> bool:
    return _name(frame).startswith(("ld-linux", "ld-musl"))


def _short(line: str) -> str:
    """FILE:LINE without folders."""
    return line.rpartition("/")[2]
