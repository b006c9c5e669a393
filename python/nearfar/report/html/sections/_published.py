"""Figures of shipped device profiles, for comparison with measurements of this machine."""

from __future__ import annotations

from nearfar.profiles import load_profile
from nearfar.report.charts.lines import Line, Spot
from nearfar.report.charts.palette import MUTED

#: Devices with published latency by region, and devices with a single published latency.
_CURVES = ("optane-100-lens",)
_LEVELS = ("optane-100", "cxl-asic")
#: Devices with published latency under load.
_LOADED = ("ddr4", "ddr5")

_BLOCK_BYTES = 64

CAPTION = "Thin dots: published values of far memories, not measured on this machine."


def latency_lines(first: float, last: float) -> list[Line]:
    """Return published latencies between two region sizes; a single figure is a horizontal line."""
    lines = []
    for name in _CURVES:
        points = load_profile(name).curve("read_latency_by_region_ns", block_bytes=_BLOCK_BYTES)
        lines.append(_line(name, [(x, y) for x, y in points if first <= x <= last]))
    for name in _LEVELS:
        level = load_profile(name).scalar("read_latency_ns")
        lines.append(_line(name, [(first, level), (last, level)]))
    return [line for line in lines if len(line.spots) > 1]


def _line(name: str, points: list[tuple[float, float]]) -> Line:
    return Line(name, MUTED, [Spot(x, y, y, y) for x, y in points], "published")


def latency_sources() -> list[str]:
    """Return the sources of the published latencies, one sentence per profile."""
    keys = dict.fromkeys(_CURVES, "read_latency_by_region_ns")
    keys |= dict.fromkeys(_LEVELS, "read_latency_ns")
    return _sources(keys)


def loaded_points() -> list[tuple[str, float, float, float]]:
    """Return profile, fraction of reads, bandwidth in B/s and latency in ns of published loads."""
    found = []
    for name in _LOADED:
        figure = load_profile(name).figure("read_latency_by_load_ns")
        found += [(name, *point) for point in figure.points or []]
    return found  # type: ignore[return-value]


def loaded_sources() -> list[str]:
    """Return the sources of the published latencies under load."""
    return _sources(dict.fromkeys(_LOADED, "read_latency_by_load_ns"))


def _sources(keys: dict[str, str]) -> list[str]:
    """Return one sentence per source: the profiles with figures from it, and the source."""
    names: dict[str, list[str]] = {}
    for name, key in keys.items():
        profile = load_profile(name)
        note = profile.figure(key).note
        text = f"{profile.source_of(key)}{f'; {note}' if note else ''}"
        names.setdefault(text, []).append(name)
    return [
        f"{', '.join(held)}, published, not measured here: {text}." for text, held in names.items()
    ]
