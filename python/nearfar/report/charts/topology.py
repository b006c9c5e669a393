"""A machine as a picture: packages with cores and caches, and the memory that belongs to each.

Drawn here, not by Altair: it needs no extra, and boxes are all it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nearfar.machine.model import Machine
from nearfar.report.charts.drawing import FULL_WIDTH, HALF_WIDTH, NARROW_WIDTH
from nearfar.report.charts.machine_parts import CoreGroup, Memory, Package, packages
from nearfar.report.charts.svg import Pen
from nearfar.report.html.section import Figure

_PAD, _GAP, _LINE = 14, 24, 17
#: Least width of a core's box with its name inside, and the sizes of boxes without.
_NAMED_CORE, _LARGE_CORE, _SMALL_CORE = 62, 20, 11
#: From this number of cores in a group on, their boxes are small.
_MANY_CORES = 48


@dataclass(frozen=True)
class _Area:
    """A place to draw at; heights follow from what is drawn."""

    x: float
    y: float
    width: float

    def inside(self, pad: float, down: float) -> _Area:
        return _Area(self.x + pad, self.y + down, self.width - 2 * pad)


def topology_figure(machine: Machine, latencies: Mapping[str, str]) -> Figure:
    """Draw the machine; ``latencies``: measured latency as text, by tier."""
    found = packages(machine, latencies)
    caption = (
        "The machine as the kernel reports it: cores with their caches, and memory at the package "
        "that it is nearest to."
    )
    if any(memory.remote for package in found for memory in package.memories):
        caption += " Dashed: memory without CPUs of its own."
    return Figure(caption, _wide(found), _narrow(found))


def _wide(found: Sequence[Package]) -> str:
    """One package with its memory on its right, or packages in two columns."""
    pen = Pen()
    if len(found) == 1:
        left = _Area(0, 0, HALF_WIDTH)
        right = _Area(FULL_WIDTH - HALF_WIDTH, 0, HALF_WIDTH)
        bottom = _package(pen, found[0], left)
        if found[0].memories:
            pen.line(left.width, 30, right.x, 30)
        return pen.svg(FULL_WIDTH, max(bottom, _memories(pen, found[0].memories, right)))
    top = 0.0
    for row in range(0, len(found), 2):
        pair = found[row : row + 2]
        columns = [
            _Area(column * (FULL_WIDTH - HALF_WIDTH), top, HALF_WIDTH)
            for column in range(len(pair))
        ]
        if len(pair) == 2:
            pen.line(HALF_WIDTH, top + 30, FULL_WIDTH - HALF_WIDTH, top + 30)
        bottoms = [_package(pen, each, area) for each, area in zip(pair, columns, strict=True)]
        lowest = max(bottoms)
        ends = [
            _hanging(pen, each, area, bottom, lowest)
            for each, area, bottom in zip(pair, columns, bottoms, strict=True)
        ]
        top = max(ends) + _GAP
    return pen.svg(FULL_WIDTH, top - _GAP)


def _narrow(found: Sequence[Package]) -> str:
    pen = Pen()
    top = 0.0
    for each in found:
        area = _Area(0, top, NARROW_WIDTH)
        bottom = _package(pen, each, area)
        top = _hanging(pen, each, area, bottom, bottom) + _GAP
    return pen.svg(NARROW_WIDTH, top - _GAP)


def _hanging(pen: Pen, package: Package, area: _Area, bottom: float, lowest: float) -> float:
    """Draw the memory of a package below it, at the height of the lowest neighbor."""
    if not package.memories:
        return lowest
    middle = area.x + area.width / 2
    pen.line(middle, bottom, middle, lowest + _GAP)
    return _memories(pen, package.memories, _Area(area.x, lowest + _GAP, area.width))


def _package(pen: Pen, package: Package, area: _Area) -> float:
    """Draw a package; return its bottom."""
    inner = area.inside(_PAD, _PAD + 30)
    frame = pen.reserve()
    pen.text(area.x + _PAD, area.y + 22, package.title, bold=True, room=inner.width)
    bottom = _groups(pen, package.groups, inner)
    for line in package.caches:
        pen.text(inner.x, bottom + _LINE, line, muted=True, room=inner.width)
        bottom += _LINE
    bottom += _PAD
    pen.fill(frame, area.x, area.y, area.width, bottom - area.y)
    return bottom


def _groups(pen: Pen, groups: Sequence[CoreGroup], area: _Area) -> float:
    """Draw the groups of cores that share a last cache, in as many columns as fit."""
    columns = 1 if len(groups) == 1 else 2 if len(groups) <= 4 else 4
    gap = 10
    width = (area.width - gap * (columns - 1)) / columns
    top = area.y
    for row in range(0, len(groups), columns):
        bottoms = [
            _group(pen, group, _Area(area.x + index * (width + gap), top, width))
            for index, group in enumerate(groups[row : row + columns])
        ]
        top = max(bottoms) + gap
    return top - gap


def _group(pen: Pen, group: CoreGroup, area: _Area) -> float:
    bottom = _cores(pen, group, area)
    if not group.cache:
        return bottom
    pen.box(area.x, bottom + 6, area.width, 24, tint=True)
    middle = area.x + area.width / 2
    pen.text(middle, bottom + 22, group.cache, centered=True, room=area.width)
    return bottom + 30


def _cores(pen: Pen, group: CoreGroup, area: _Area) -> float:
    """Draw a box for each core, with names where they fit."""
    gap = 4
    number = len(group.cores)
    named = (area.width + gap) / number - gap >= _NAMED_CORE
    size = _SMALL_CORE if number >= _MANY_CORES else _LARGE_CORE
    width = (area.width + gap) / number - gap if named else size
    height = 40 if named else size
    columns = number if named else max(int((area.width + gap) // (size + gap)), 1)
    for index, core in enumerate(group.cores):
        x = area.x + index % columns * (width + gap)
        y = area.y + index // columns * (height + gap)
        pen.box(x, y, width, height, strong=core.usable)
        if named:
            pen.text(x + width / 2, y + 17, core.name, centered=True, room=width)
            pen.text(x + width / 2, y + 33, core.cpus, centered=True, muted=True, room=width)
    rows = -(-number // columns)
    return area.y + rows * (height + gap) - gap


def _memories(pen: Pen, memories: Sequence[Memory], area: _Area) -> float:
    """Draw the memory of a package, one box below the other; return the bottom."""
    top = area.y
    for memory in memories:
        height = _PAD + 20 + _LINE * len(memory.lines)
        pen.box(area.x, top, area.width, height, card=True, dashed=memory.remote)
        tag = 8.0 * len(memory.tag) + 18 if memory.tag else 0
        pen.text(area.x + _PAD, top + 22, memory.title, bold=True, room=area.width - 2 * _PAD - tag)
        if memory.tag:
            pen.tag(area.x + area.width - _PAD - tag, top + 8, tag, memory.tag)
        for index, line in enumerate(memory.lines):
            y = top + 22 + _LINE * (index + 1)
            pen.text(area.x + _PAD, y, line, muted=True, room=area.width - 2 * _PAD)
        top += height + 10
    return top - 10 if memories else top
