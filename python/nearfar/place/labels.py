"""Names of sites: a source line if debug information has one, or a function, or object and offset.

Each return address represents a chain of calls: the function that makes the call, and the functions
that it is inlined into. Of all these calls, the innermost with a source line names the site, since
libraries without one (wrappers of allocators, the C++ library) are not informative. If several
sites have that name, callers are prepended until the names differ: ``FILE:LINE>LINE``,
``FILE:LINE>FILE:LINE``. Calls from one line have numbers: ``FILE:LINE (call 2)``. A site without
any source line is named in the same way by the functions of its calls that symbol tables have:
``cfree+0x41 (libc.so.6)``. Callers below the dynamic loader are dropped: there the frame pointer
was wrong, in code that keeps none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.place.memory_names import part_name, region_name, sizes_name
from nearfar.place.sites import Frame, Site
from nearfar.process.functions import Function, functions_at, without_template_arguments
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
    called = [site for site in named if site.kind in ("heap", "mapping") and site.has_call()]
    calls = inline_calls({frame.place() for site in called for frame in site.frames})
    chains = {site.number: _chain(site, calls) for site in called}
    named_by = {
        **_functions([site for site in called if not chains[site.number]]),
        **{
            number: [_short(call.line) for call in chain]
            for number, chain in chains.items()
            if chain
        },
    }
    labels = {site.number: _label(site, named_by, 1) for site in named}
    for depth in range(2, _DEEPEST + 1):
        often = Counter(labels[site.number] for site in called)
        for site in called:
            if often[labels[site.number]] > 1:
                labels[site.number] = _label(site, named_by, depth)
    labels |= _numbered(called, labels)
    functions = {
        number: [f"{call.function} {_short(call.line)}" for call in chain]
        for number, chain in chains.items()
    }
    return Labels(labels, functions)


def _numbered(called: Sequence[Site], labels: Mapping[int, str]) -> dict[int, str]:
    """Labels of sites whose calls are on the same lines, numbered by the place in the code."""
    alike: dict[str, list[Site]] = defaultdict(list)
    for site in called:
        alike[labels[site.number]].append(site)
    return {
        site.number: f"{label} (call {nth})"
        for label, sites in alike.items()
        if len(sites) > 1
        for nth, site in enumerate(sorted(sites, key=_offsets), start=1)
    }


def _offsets(site: Site) -> list[int]:
    return [frame.offset for frame in site.frames]


def _chain(site: Site, calls: Mapping[str, list[Call]]) -> list[Call]:
    """All calls with a source line, the innermost first."""
    return [call for frame in _callers(site) for call in calls.get(frame.place(), [])]


def _callers(site: Site) -> list[Frame]:
    return [f for f in site.frames if f is site.frames[0] or not _is_loader(f)]


def _functions(sites: Iterable[Site]) -> dict[int, list[str]]:
    """``FUNCTION+OFFSET (FILE)`` of all calls in a function with a symbol, the innermost first.

    Of the innermost call, if no symbol covers it, file and offset.
    """
    callers = {site.number: _callers(site) for site in sites}
    offsets: dict[str, set[int]] = defaultdict(set)
    for frame in (frame for frames in callers.values() for frame in frames):
        offsets[frame.path].add(frame.offset - 1)  # in the call, which can end the function
    known = {
        path: functions_at(Path(path), wanted, parameters=False)
        for path, wanted in offsets.items()
        if path
    }
    named: dict[int, list[str]] = {}
    for number, frames in callers.items():
        functions = [known.get(frame.path, {}).get(frame.offset - 1) for frame in frames]
        named[number] = [
            _function(frame, function)
            for frame, function in zip(frames, functions, strict=True)
            if function is not None or frame is frames[0]
        ]
    return named


def _function(frame: Frame, function: Function | None) -> str:
    if function is None:
        return f"{_name(frame)}+{frame.offset:#x}"
    name = without_template_arguments(function.name)
    return f"{name}+{function.offset + 1:#x} ({_name(frame)})"


def _label(site: Site, chains: Mapping[int, list[str]], depth: int) -> str:
    """A label with at most ``depth`` calls, the innermost first."""
    return _whole_label(site, chains, depth) + part_name(site.part) + sizes_name(site.block_sizes)


def _whole_label(site: Site, chains: Mapping[int, list[str]], depth: int) -> str:
    if not site.frames:
        return region_name(site.selector) if site.selector else _FIXED[site.kind]
    if site.kind == "statics":
        return f"globals of {_name(site.frames[0])}"
    lines = chains.get(site.number, [])[:depth]
    if not lines:
        return f"{_name(site.frames[0])}+{site.frames[0].offset:#x}"
    label, file = lines[-1], _file(lines[-1])
    for inner in reversed(lines[:-1]):
        inner_file = _file(inner)
        label += f">{inner.removeprefix(f'{file}:') if file and inner_file == file else inner}"
        file = inner_file
    return label


def _file(call: str) -> str:
    """The file of a call ``FILE:LINE``; empty for a function."""
    file, _, line = call.rpartition(":")
    return file if line.isdecimal() else ""


def _name(frame: Frame) -> str:
    return Path(frame.path).name or "unknown code"


def _is_loader(frame: Frame) -> bool:
    return _name(frame).startswith(("ld-linux", "ld-musl"))


def _short(line: str) -> str:
    """FILE:LINE without folders."""
    return line.rpartition("/")[2]
