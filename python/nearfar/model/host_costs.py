"""What loads, page walks and durable stores cost on a host, out of its file: no device yet.

Equation: a load that the k-th level serves takes l_k; one beyond all of them the memory's latency.
A page walk, after a miss of the last level of the TLB, takes walk(S) more, S the bytes in use: the
host's curve `page_walk_by_region_ns` where nearfar measured it (4 KiB pages less huge ones), else
`page_walk_ns` for each walk, i.e. each miss of the last level of the TLB.
Source: the host's file; every figure has its own.
Limits: one thread; 4 KiB pages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from nearfar.errors import BadInputError
from nearfar.model.map_work import Constant, constant
from nearfar.records.profile import Host
from nearfar.simulate.watch import Caches, Flushes, Watched

LEVELS = ("l1d", "l2", "l3")
#: What an evicting flush costs more than the other, over a load, where the other evicts or keeps.
_FEW_SHARE, _MUCH_SHARE = 0.125, 0.25


@dataclass(frozen=True)
class Walks:
    """Cost of a page walk: one figure, or a curve by the bytes in use. Seconds."""

    each: Constant | None
    curve: tuple[tuple[float, Constant], ...] = ()

    def of_operation(self, watched: Watched, bytes_in_use: float) -> Constant:
        """Seconds an operation."""
        if self.each is not None:
            return scaled(self.each, watched.walks)
        return scaled(_interpolated(self.curve, bytes_in_use), watched.walks)


@dataclass(frozen=True)
class HostCosts:
    """Seconds of a load by level, of one from near memory, of walks; the caches to run through."""

    name: str
    loads: tuple[Constant, ...]
    memory: Constant
    walks: Walks
    caches: Caches


def scaled(cost: Constant, times: float) -> Constant:
    """So many of it."""
    return Constant(cost.value * times, cost.low * times, cost.high * times)


def _interpolated(curve: tuple[tuple[float, Constant], ...], at: float) -> Constant:
    """On a logarithmic scale of bytes; the ends' values beyond them."""
    for (below, low), (above, high) in pairwise(curve):
        if below <= at <= above:
            share = math.log(at / below) / math.log(above / below)
            return Constant(
                *(a + share * (b - a) for a, b in zip(_triple(low), _triple(high), strict=True))
            )
    return curve[0][1] if at < curve[0][0] else curve[-1][1]


def _triple(cost: Constant) -> tuple[float, float, float]:
    return cost.value, cost.low, cost.high


def costs_of(host: Host) -> HostCosts:
    """Out of a host's file. Raises BadInputError for a figure that is not there."""
    return HostCosts(
        host.name,
        tuple(_load(host, level) for level in ("l1", "l2", "l3")),
        constant(host, "near_read_latency_ns", 1e-9),
        _walks(host),
        _caches(host),
    )


def _load(host: Host, level: str) -> Constant:
    """Of a level: in ns, or in cycles of the host."""
    if f"{level}_load_cycles" in host.figures:
        frequency = constant(host, "frequency_hz")
        cycles = constant(host, f"{level}_load_cycles")
        return Constant(
            cycles.value / frequency.value, cycles.low / frequency.high,
            cycles.high / frequency.low,
        )  # fmt: skip
    return constant(host, f"{level}_load_ns", 1e-9)


def _walks(host: Host) -> Walks:
    key = "page_walk_by_region_ns"
    if key not in host.figures:
        return Walks(constant(host, "page_walk_ns", 1e-9))
    figure = host.figure(key)
    ranges = figure.ranges or [(p[-1], p[-1]) for p in figure.points or []]
    curve = sorted(
        (point[0], Constant(point[1] * 1e-9, low * 1e-9, high * 1e-9))
        for point, (low, high) in zip(figure.points or [], ranges, strict=True)
    )
    if len(curve) < 2:
        raise BadInputError(f"{key} of {host.name} has too few points", "measure the host again")
    return Walks(None, tuple(curve))


def _caches(host: Host) -> Caches:
    levels = tuple(
        (int(host.scalar(f"{level}_bytes")), int(host.scalar(f"{level}_ways"))) for level in LEVELS
    )
    last = {int(size) for size in host.figure("l3_bytes").interval()} - {levels[-1][0]}
    tlb = tuple(
        (int(host.scalar(f"{level}_entries")), int(host.scalar(f"{level}_ways")))
        for level in ("dtlb", "stlb")
    )
    return Caches(levels, tlb, flushes=_flushes(host), last_bytes=tuple(sorted(last)))


def _flushes(host: Host) -> Flushes:
    """A flush that keeps its line spares the next store the way to memory and back."""
    keeping, evicting = "near_flush_latency_ns", "near_evicting_flush_latency_ns"
    if keeping not in host.figures or evicting not in host.figures:
        return "both"
    spared = host.scalar(evicting) - host.scalar(keeping)
    load = host.scalar("near_read_latency_ns")
    if spared < _FEW_SHARE * load:
        return "evict"
    return "keep" if spared > _MUCH_SHARE * load else "both"
