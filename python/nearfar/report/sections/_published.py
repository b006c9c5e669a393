"""Figures of shipped device profiles, to be set beside what was measured here."""

from __future__ import annotations

from nearfar.profiles import load_profile
from nearfar.report.lines import Line, Spot
from nearfar.report.palette import MUTED

#: Devices whose latency by region is published, and those of which one figure is.
_CURVES = ("optane-100-lens",)
_LEVELS = ("optane-100", "cxl-asic")
#: Devices whose latency under load is published.
_LOADED = ("ddr4", "ddr5")

_BLOCK_BYTES = 64

CAPTION = "Thin dots: published by others for far memories, not measured here."


def latency_lines(first: float, last: float) -> list[Line]:
    """Published latencies between two region sizes; a single figure is drawn as a level."""
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
    """Where the published latencies come from, one sentence a profile."""
    keys = dict.fromkeys(_CURVES, "read_latency_by_region_ns")
    keys |= dict.fromkeys(_LEVELS, "read_latency_ns")
    return _sources(keys)


def loaded_points() -> list[tuple[str, float, float, float]]:
    """Profile, share of reads, bandwidth in bytes/s and latency in ns of published loads."""
    found = []
    for name in _LOADED:
        figure = load_profile(name).figure("read_latency_by_load_ns")
        found += [(name, *point) for point in figure.points or []]
    return found  # type: ignore[return-value]


def loaded_sources() -> list[str]:
    """Where the published latencies under load come from."""
    return _sources(dict.fromkeys(_LOADED, "read_latency_by_load_ns"))


def _sources(keys: dict[str, str]) -> list[str]:
    """A sentence a source: the profiles that have their figure from it, and what it is."""
    names: dict[str, list[str]] = {}
    for name, key in keys.items():
        profile = load_profile(name)
        note = profile.figure(key).note
        told = f"{profile.source_of(key)}{f'; {note}' if note else ''}"
        names.setdefault(told, []).append(name)
    return [
        f"{', '.join(held)}, published, not measured here: {told}." for told, held in names.items()
    ]
