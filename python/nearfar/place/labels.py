"""Names of sites: a source line if debug information has one, or object and offset.

Each return address represents a chain of calls: the function that makes the call, and the functions
that it is inlined into. Of all these calls, the innermost with a source line names the site, since
libraries without one (wrappers of allocators, the C++ library) are not informative. If several
sites have that name, callers are prepended until the names differ: ``FILE:LINE>LINE``,
``FILE:LINE>FILE:LINE``. Callers below the dynamic loader are dropped: there the frame pointer was
wrong, in code that keeps none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nearfar.place.sites import Frame, Site
from nearfar.verify.symbols import Call, inline_calls

_FIXED = {
    "stack": "stack",
    "statics": "globals",
    "mapping": "mapped memory",
    "code": "code",
    "unknown": "unknown",
    "heap": "heap, no call site",
}
#: Maximum calls in a label: as many frames as a trace has, and the calls inlined into each.
_DEEPEST = 12


@dataclass(frozen=True)
class Labels:
    """By number of the site: its name, and its calls as ``FUNCTION FILE:LINE``, innermost first."""

    at: dict[int, str]
    functions: dict[int, list[str]]


def labels_of(sites: Iterable[Site]) -> Labels:
    """Names of sites, distinct if the sites' calls are."""
    named = list(sites)
    heap = [site for site in named if site.kind == "heap"]
    calls = inline_calls({frame.place() for site in heap for frame in site.frames})
    chains = {site.number: _chain(site, calls) for site in heap}
    labels = {site.number: _label(site, chains, 1) for site in named}
    for depth in range(2, _DEEPEST + 1):
        often = Counter(labels[site.number] for site in heap)
        for site in heap:
            if often[labels[site.number]] > 1:
                labels[site.number] = _label(site, chains, depth)
    functions = {
        number: [f"{call.function} {_short(call.line)}" for call in chain]
        for number, chain in chains.items()
    }
    return Labels(labels, functions)


def _chain(site: Site, calls: Mapping[str, list[Call]]) -> list[Call]:
    """All calls with a source line, the innermost first."""
    callers = [f for f in site.frames if f is site.frames[0] or not _is_loader(f)]
    return [call for frame in callers for call in calls.get(frame.place(), [])]


def _label(site: Site, chains: Mapping[int, list[Call]], depth: int) -> str:
    """A label with at most ``depth`` calls, the innermost first."""
    if not site.frames:
        return _FIXED[site.kind]
    if site.kind == "statics":
        return f"globals of {_name(site.frames[0])}"
    lines = [_short(call.line) for call in chains.get(site.number, [])[:depth]]
    if not lines:
        return f"{_name(site.frames[0])}+{site.frames[0].offset:#x}"
    label, file = lines[-1], lines[-1].rpartition(":")[0]
    for inner in reversed(lines[:-1]):
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
