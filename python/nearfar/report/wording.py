"""Text of figures, intervals and names in the report and the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from nearfar.records.figures import FigureModel, Origin
from nearfar.units import format_bandwidth, format_energy, format_size, format_time

_PAGES = {
    "4k": "4 KiB pages",
    "thp": "transparent huge pages",
    "2m": "2 MiB pages",
    "1g": "1 GiB pages",
    "system": "pages of the system's choice",
}

#: Page kinds whose page walks hardly add to the latency of memory.
HUGE_PAGES = frozenset({"thp", "2m", "1g"})

_ORDER = list(Origin)


def pages_name(pages: str) -> str:
    """Return the meaning of a curve's ``pages`` in words."""
    return _PAGES.get(pages, f"{pages} pages")


def plain_tier(tier: str) -> str:
    """Return a tier without its page size, if that is shown next to it."""
    return re.sub(r",pages=\w+", "", tier)


def tier_on_pages(tier: str, pages: str | None) -> str:
    """Return a tier and its pages in words, if they are known."""
    if pages in {None, "system"}:
        return tier
    return f"{plain_tier(tier)}, {pages_name(str(pages))}"


def _format_rate(value: float) -> str:
    """Return events per second."""
    for unit, prefix in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {prefix}/s"
    return f"{value:.3g} /s"


def _format_ratio(value: float) -> str:
    """Return a ratio with two decimals, or three digits if it is far from 1."""
    if value >= 100:
        return f"{value:,.0f} ×"
    return f"{value:.2f} ×" if 0.1 <= value < 10 else f"{value:.{2 if value < 0.1 else 3}g} ×"


def format_quantity(key: str, value: float) -> str:
    """Return a value with the unit that its key carries."""
    if key.endswith("bytes_per_s"):
        return format_bandwidth(value)
    if key.endswith("_bytes"):
        return format_size(value)
    if key.endswith("_ns"):
        return format_time(value * 1e-9)
    if key.endswith("_per_s"):
        return _format_rate(value)
    if key.endswith("_s"):
        return format_time(value)
    if key.endswith("_J"):
        return format_energy(value)
    if key.endswith("_share"):
        return f"{value:.0%}"
    if (
        key in ("ratio", "pmdk_ratio")
        or key.startswith("slowdown_")
        or key.endswith(("ratio_to_glibc", "slowdown"))
    ):
        return _format_ratio(value)
    if isinstance(value, int) or 1e3 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def format_interval(key: str, low: float, high: float) -> str:
    """Return ``179–184 ns``: both ends, the unit once if they share it."""
    first, last = format_quantity(key, low), format_quantity(key, high)
    number, _, unit = first.partition(" ")
    if first == last:
        return last
    return f"{number}–{last}" if unit and last.endswith(f" {unit}") else f"{first} – {last}"


def interval_of(result: FigureModel, key: str) -> str:
    """Return the interval of a key in words; with too few repeats for one, their number.

    Empty if the figure is computed and exact, or if nothing is known.
    """
    pair = result.interval(key)
    entry = result.provenance.get(key)
    is_sampled = entry is not None and entry.is_sampled()
    if pair:
        return format_interval(key, *pair) if pair[0] < pair[1] or is_sampled else ""
    return count(entry.samples, "repeat") if entry is not None and is_sampled else ""


def origin_of(result: FigureModel, key: str) -> Origin | None:
    """Return the origin of a number; None if the record does not specify it."""
    entry = result.provenance.get(key)
    return entry.origin if entry else None


def origin_mark(result: FigureModel, key: str) -> str:
    """Return the mark of a figure that was not measured, such as `` (emulated)``."""
    origin = origin_of(result, key)
    if origin is Origin.MEASURED:
        return ""
    return f" ({origin.value if origin else 'of unrecorded origin'})"


def say(result: FigureModel, key: str) -> str:
    """Return a figure for a sentence, with its origin unless it was measured."""
    return format_quantity(key, float(getattr(result, key))) + origin_mark(result, key)


def origins(pairs: Iterable[tuple[FigureModel, str]]) -> tuple[Origin, ...]:
    """Return the origins of figures, in a fixed order."""
    found = {origin_of(result, key) for result, key in pairs}
    return tuple(origin for origin in _ORDER if origin in found)


def line_kind(points: Iterable[FigureModel], key: str) -> Literal["measured", "emulated"]:
    """Return the style of a line through points: that of measured ones if all were measured."""
    measured = all(origin_of(point, key) is Origin.MEASURED for point in points)
    return "measured" if measured else "emulated"


def percent_more(value: float, base: float) -> str:
    """Return ``30 % more`` or ``12 % less`` than the base, ``the same`` below half a percent."""
    change = (value / base - 1) * 100
    if abs(change) < 0.5:
        return "the same"
    return f"{abs(change):.0f} % {'more' if change > 0 else 'less'}"


def sentence(text: str) -> str:
    """Return the text with a capital first letter, the rest unchanged."""
    return text[:1].upper() + text[1:]


#: Values of units as ``format_quantity`` writes them, in the base unit of a key.
_UNITS = {
    "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "TB/s": 1e12, "GB/s": 1e9, "MB/s": 1e6,
    "kB/s": 1e3, "TiB": 2.0**40, "GiB": 2.0**30, "MiB": 2.0**20, "KiB": 2.0**10, "B": 1.0,
    "J": 1.0, "mJ": 1e-3, "µJ": 1e-6, "nJ": 1e-9, "pJ": 1e-12, "M/s": 1e6, "k/s": 1e3, "/s": 1.0,
}  # fmt: skip


def axis_unit(key: str, greatest: float) -> tuple[str, float]:
    """Return unit and divisor for an axis with values of a key up to ``greatest``.

    A key without a unit has an empty unit and the divisor 1.
    """
    unit = format_quantity(key, greatest).partition(" ")[2]
    if unit not in _UNITS:
        return "", 1.0
    return unit, _UNITS[unit] * (1e9 if key.endswith("_ns") else 1.0)


def when(moment: str) -> str:
    """Return a time of a record as ``2025-01-02 03:04:05 UTC``."""
    return moment.replace("T", " ").replace("Z", " UTC")


def count(number: int, thing: str) -> str:
    """Return ``1 thread``, ``2 threads``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def percentile(share: float) -> str:
    """Return ``p50``, ``p99.9``."""
    return f"p{100 * share:.6g}"


def mix_name(reads: int, writes: int, nontemporal: bool = False) -> str:
    """Return ``reads``, ``writes``, ``3:1``; non-temporal stores are marked."""
    if writes == 0:
        return "reads"
    mix = "writes" if reads == 0 else f"{reads}:{writes} mix"
    return f"{mix} past caches" if nontemporal else mix
