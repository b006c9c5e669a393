"""Figures, intervals and names as the report and the terminal write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from nearfar.records.shape import Origin, Shaped
from nearfar.units import format_bandwidth, format_energy, format_size, format_time

_PAGES = {
    "4k": "4 KiB pages",
    "thp": "transparent huge pages",
    "2m": "2 MiB pages",
    "1g": "1 GiB pages",
    "system": "pages of the system's choice",
}

#: Page kinds whose walks are short enough to leave the memory's own latency.
HUGE_PAGES = frozenset({"thp", "2m", "1g"})

_ORDER = list(Origin)


def pages_name(pages: str) -> str:
    """What a curve's ``pages`` means, in words."""
    return _PAGES.get(pages, f"{pages} pages")


def plain_tier(tier: str) -> str:
    """A tier without the page size it asked for, where that is told beside it."""
    return re.sub(r",pages=\w+", "", tier)


def _format_rate(value: float) -> str:
    """Events a second."""
    for unit, prefix in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {prefix}/s"
    return f"{value:.3g} /s"


def format_quantity(key: str, value: float) -> str:
    """A value with the unit that its key carries."""
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
        return f"{value:.2f} ×" if value >= 0.1 else f"{value:.2g} ×"
    if isinstance(value, int) or 1e3 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def format_interval(key: str, low: float, high: float) -> str:
    """``179–184 ns``: both ends, the unit once where they share it."""
    first, last = format_quantity(key, low), format_quantity(key, high)
    number, _, unit = first.partition(" ")
    if first == last:
        return last
    return f"{number}–{last}" if unit and last.endswith(f" {unit}") else f"{first} – {last}"


def interval_of(shaped: Shaped, key: str) -> str:
    """The interval of a key in words, empty where none is recorded."""
    pair = shaped.interval(key)
    return format_interval(key, *pair) if pair else ""


def origin_of(shaped: Shaped, key: str) -> Origin | None:
    """How a number came about; None where the record does not say."""
    entry = shaped.provenance.get(key)
    return entry.origin if entry else None


def origin_mark(shaped: Shaped, key: str) -> str:
    """What to add to a figure that was not measured, such as `` (emulated)``."""
    origin = origin_of(shaped, key)
    if origin is Origin.MEASURED:
        return ""
    return f" ({origin.value if origin else 'of unrecorded origin'})"


def say(shaped: Shaped, key: str) -> str:
    """A figure inside a sentence: with its origin in words unless it was measured."""
    return format_quantity(key, float(getattr(shaped, key))) + origin_mark(shaped, key)


def origins(pairs: Iterable[tuple[Shaped, str]]) -> tuple[Origin, ...]:
    """The origins found among figures, in a fixed order."""
    found = {origin_of(shaped, key) for shaped, key in pairs}
    return tuple(origin for origin in _ORDER if origin in found)


def line_kind(points: Iterable[Shaped], key: str) -> Literal["measured", "emulated"]:
    """How a line through points is to be drawn: as measured only where all of them were."""
    measured = all(origin_of(point, key) is Origin.MEASURED for point in points)
    return "measured" if measured else "emulated"


def percent_more(value: float, base: float) -> str:
    """``30 % more`` or ``12 % less`` than the base, ``as much as`` below half a percent."""
    change = (value / base - 1) * 100
    if abs(change) < 0.5:
        return "the same"
    return f"{abs(change):.0f} % {'more' if change > 0 else 'less'}"


def when(moment: str) -> str:
    """A moment of a record for people: ``2025-01-02 03:04:05 UTC``."""
    return moment.replace("T", " ").replace("Z", " UTC")


def count(number: int, thing: str) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def percentile(share: float) -> str:
    """``p50``, ``p99.9``."""
    return f"p{100 * share:.6g}"


def mix_name(reads: int, writes: int, nontemporal: bool = False) -> str:
    """``reads``, ``writes``, ``3:1``; stores past the caches say so."""
    if writes == 0:
        return "reads"
    mix = "writes" if reads == 0 else f"{reads}:{writes} mix"
    return f"{mix} past caches" if nontemporal else mix
