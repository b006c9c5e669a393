"""A device profile or a host in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearfar.records.profile import Datasheet, Figure, Host, HostMeasurement
from nearfar.report.wording import count, format_interval, format_quantity

#: Most points of a curve that are printed; of longer curves, as many evenly spaced points.
_SHOWN = 6


def sheet(what: Datasheet, *, all_points: bool = False) -> RenderableType:
    """Return head, figures with value, range, confidence and source, and the full sources."""
    most = sys.maxsize if all_points else _SHOWN
    head = Text(what.name, style="bold").append(f"  {what.title}", style="not bold")
    parts: list[RenderableType] = [head, Text(what.description)]
    if what.machine:
        parts.append(Text(f"Seen on: {what.machine}", style="dim"))
    memories = what.memories if isinstance(what, Host) else {}
    if isinstance(what, Host) and what.measured:
        known = what.measured
        kind = "provisional: `nearfar study` completes it" if known.provisional else "complete"
        parts.append(Text(f"Measured until {known.ended}: {count(known.epochs, 'epoch')}, {kind}"))
        if known.disturbed:
            parts.append(Text(_disturbed(known)))
    if not what.figures and not memories:
        return Group(*parts)
    parts += [Text(""), _table(what.figures, most)]
    for tier, figures in memories.items():
        parts += [Text(""), Text(tier, style="bold"), _table(figures, most)]
    parts.append(Text(""))
    parts += [Text(f"{key}: {text}", style="dim") for key, text in what.sources.items()]
    notes = [f"· {key}: {figure.note}" for key, figure in what.figures.items() if figure.note]
    every = [
        *what.figures.values(),
        *(f for figures in memories.values() for f in figures.values()),
    ]
    if any(len(figure.points or []) > most for figure in every):
        notes.append(f"· of longer curves {most} points are shown: `nearfar show --all` prints all")
    parts += [Text(""), *(Text(note, style="dim") for note in notes)] if notes else []
    return Group(*parts)


def _disturbed(known: HostMeasurement) -> str:
    said = "Disturbed: other programs ran meanwhile"
    if not known.provisional:
        return f"{said}; each figure is from the epochs that were slowed down least"
    return (
        f"{said}. Ranges extend to what the machine may reach when idle; `nearfar study` measures "
        "it again"
    )


def _table(figures: Mapping[str, Figure], most: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("Figure", "Value", "Range"):
        table.add_column(name, justify="left" if name == "Figure" else "right", no_wrap=True)
    table.add_column("Confidence")  # wraps if the others need its width
    table.add_column("Source")
    for key, figure in figures.items():
        for row in _rows(key, figure, most):
            table.add_row(*(Text(cell) for cell in row))
    return table


def amount(key: str, value: float, unit: str = "") -> str:
    """Return a value in the unit of its key; a price or a rare unit with ``unit`` verbatim."""
    if value == 0 or key.endswith("percentile"):
        return f"{value:g}"
    if key == "price_per_gib":
        return f"{value:g} {unit}".rstrip()
    if key.endswith("_hz"):
        return f"{value / 1e9:g} GHz"
    for end, short in (("_mA", "mA"), ("_V", "V"), ("pJ_per_bit", "pJ/bit"), ("cycles", "cycles")):
        if key.endswith(end):
            return f"{value:g} {short}"
    if key.endswith("operations_per_s"):
        return f"{value:,.0f} /s"
    return format_quantity(key, int(value) if value.is_integer() else value)


def coordinate(name: str, value: float) -> str:
    """Return ``4 threads``, ``access 64 B``: the position of a point on a curve."""
    if name == "threads":
        return count(int(value), "thread")
    label = name.removesuffix("_bytes_per_s").removesuffix("_bytes").removesuffix("_ns")
    return f"{label.replace('_', ' ')} {amount(name, value)}"


def _rows(key: str, figure: Figure, most: int) -> Iterator[list[str]]:
    trust = figure.confidence + (f" {figure.origin.value}" if figure.origin else "")
    trust += ", disturbed" if figure.is_disturbed() else ""
    source = figure.source + (f", {figure.date}" if figure.date else "")
    if figure.value is not None:
        span = "" if figure.low is None else _span(key, *figure.interval())
        yield [key, amount(key, figure.value, figure.unit), span, trust, source]
        return
    points = figure.points or []
    shown = min(len(points), most)
    kept = sorted({round(i * (len(points) - 1) / max(shown - 1, 1)) for i in range(shown)})
    length = count(len(points), "point")
    part = "" if shown == len(points) else f", {shown} shown"
    yield [key, length + part, "", trust, source]
    for index in kept:
        *where, value = points[index]
        named = zip(figure.x or [], where, strict=True)
        at = ", ".join(coordinate(name, x) for name, x in named)
        span = _span(key, *figure.ranges[index]) if figure.ranges else ""
        yield [f"  {at}", amount(key, value), span, "", ""]


def _span(key: str, low: float, high: float) -> str:
    if key.endswith(("_bytes_per_s", "_bytes", "_ns")):
        return format_interval(key, low, high)
    return f"{low:.3g} – {high:.3g}"
