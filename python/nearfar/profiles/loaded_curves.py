"""Latency of a memory by the bandwidth in use and the fraction of reads, from its profile.

Curves whose last points show no saturation are *open*: the load that measured them could not use
all of the memory's bandwidth. Beyond the end of a curve nothing is known; no value is extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.profile import Profile

_LATENCY = "read_latency_ns"
_BY_LOAD = "read_latency_by_load_ns"
_BY_SHARE = "bandwidth_by_read_share_bytes_per_s"
_COORDINATES = ["read_share", "bandwidth_bytes_per_s"]
#: A curve saturates if a step of its upper half adds relatively more latency than bandwidth.
_STEEP = 1.0
#: ... and if its highest latency is so many times the lowest: less is noise of a measurement.
_MIN_GROWTH = 1.25
#: Fewer points show only the ends of a curve.
_MIN_POINTS = 4


@dataclass(frozen=True)
class Loaded:
    """A point of a loaded curve: bytes/s in use, and the latency in ns."""

    bandwidth: float
    latency: float


@dataclass(frozen=True)
class LoadedCurves:
    """Curves by the fraction of reads, ``open_shares``: those that the load did not saturate.

    ``warnings``: what the profile lacks.
    """

    curves: dict[float, tuple[Loaded, ...]]
    open_shares: tuple[float, ...]
    warnings: tuple[str, ...] = ()

    def points(self) -> list[tuple[float, float, float]]:
        """Fraction of reads, bandwidth and latency of all points."""
        return [
            (share, point.bandwidth, point.latency)
            for share, curve in self.curves.items()
            for point in curve
        ]

    def is_open(self, read_share: float) -> bool:
        """Whether a curve that counts at this fraction of reads is open."""
        shares = sorted(self.curves)
        below = [share for share in shares if share <= read_share] or shares[:1]
        above = [share for share in shares if share >= read_share] or shares[-1:]
        return below[-1] in self.open_shares or above[0] in self.open_shares

    def covers(self, read_share: float) -> bool:
        """Whether the fraction of reads lies between measured ones."""
        return min(self.curves) <= read_share <= max(self.curves)


def curves_of(profile: Profile) -> LoadedCurves:
    """The curves of a profile; without loaded latencies, its idle latency up to its bandwidth.

    Raises BadInputError if the profile has no latency, or no bandwidth.
    """
    if _BY_LOAD not in profile.figures:
        return _flat(profile)
    figure = profile.figure(_BY_LOAD)
    if figure.x != _COORDINATES or figure.points is None:
        raise BadInputError(
            f"{_BY_LOAD} of {profile.name} must be over {' and '.join(_COORDINATES)}",
            "write x in this order into a copy of the file; see docs/formats/profile.md",
        )
    curves: dict[float, list[Loaded]] = {}
    for share, bandwidth, latency in figure.points:
        curves.setdefault(share, []).append(Loaded(bandwidth, latency))
    if not any(point.bandwidth for curve in curves.values() for point in curve):
        raise BadInputError(
            f"{_BY_LOAD} of {profile.name} has no point with traffic",
            "add points with a bandwidth above 0",
        )
    few = max(len(curve) for curve in curves.values()) < _MIN_POINTS
    warnings = [f"the curves of {profile.name} have only their ends"] if few else []
    idle = profile.scalar(_LATENCY) if _LATENCY in profile.figures else math.inf
    return LoadedCurves(
        {share: _from_idle(curve, idle) for share, curve in sorted(curves.items())},
        tuple(share for share in sorted(curves) if not saturates(curves[share])),
        tuple(warnings),
    )


def _from_idle(curve: Sequence[Loaded], idle: float) -> tuple[Loaded, ...]:
    """Prepend the idle latency at no load if the curve starts at a higher load and a higher
    latency. The idle latency does not depend on the mix."""
    first = min(curve, key=lambda point: point.bandwidth)
    begins_later = first.bandwidth > 0 and idle < min(point.latency for point in curve)
    return (Loaded(0.0, idle), *curve) if begins_later else tuple(curve)


def _flat(profile: Profile) -> LoadedCurves:
    latency = profile.scalar(_LATENCY)
    if _BY_SHARE in profile.figures:
        peaks = dict(profile.curve(_BY_SHARE))
    else:
        peaks = {1.0: profile.scalar("read_bandwidth_bytes_per_s")}
        if "write_bandwidth_bytes_per_s" in profile.figures:
            peaks[0.0] = profile.scalar("write_bandwidth_bytes_per_s")
    return LoadedCurves(
        {
            share: (Loaded(0.0, latency), Loaded(peak, latency))
            for share, peak in sorted(peaks.items())
        },
        (),
        (f"{profile.name} has no loaded latencies: {latency:g} ns is assumed up to its bandwidth",),
    )


def saturates(points: Sequence[Loaded]) -> bool:
    """Whether more load added mostly latency at the end of a curve: in a step of the upper half of
    its bandwidth, latency grew by a larger factor than bandwidth.

    With two points, of which the first is idle: whether latency grew by at least 50 %.
    """
    ordered = sorted(points, key=lambda point: (point.bandwidth, point.latency))
    top = ordered[-1].bandwidth
    if len(ordered) == 2 and ordered[0].bandwidth == 0:
        return ordered[1].latency >= ordered[0].latency * (1 + _STEEP / 2)
    latencies = [point.latency for point in ordered]
    if max(latencies) < _MIN_GROWTH * min(latencies):
        return False
    upper = [point for point in ordered if point.bandwidth >= top / 2]
    for low, high in pairwise(upper):
        more = high.latency / low.latency - 1
        if more > 0 and more > _STEEP * (high.bandwidth / low.bandwidth - 1):
            return True
    return False


def open_ends(curves: Mapping[float, Sequence[Loaded]]) -> str:
    """The mark of curves that the load did not saturate; empty if it saturated all."""
    shares = [f"{share * 100:.4g}%" for share in sorted(curves) if not saturates(curves[share])]
    return f"not saturated at {', '.join(shares)} reads" if shares else ""
