"""Costs of loads, page walks and durable stores on a host, from its file; without a device.

Equation: the time of a load is the sum of
  l_k       latency of the cache level k that has the line; the memory's latency if none has it
  walk(S)   for a miss of the last TLB level, with S bytes in use: from the host's curve
            `page_walk_by_region_ns` (4 KiB pages less huge pages), else `page_walk_ns`
  stlb_hit  for a miss of the first TLB level that the second serves: `stlb_hit_ns`, else 0
  window    seconds of software that a core executes ahead of a load: `reorder_window_ns`, else
            `WINDOW`
The size of the last cache is the part that other programs leave: if nearfar measured the host, the
bytes C(S) that it held of a region of S bytes, under one chase (for dependent operations) or under
several (for independent ones).
Source: the host's file; every figure has its own.
Limits: one thread; 4 KiB pages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from nearfar.errors import BadInputError
from nearfar.model.map_work import NOTHING, Constant, constant, difference
from nearfar.records.profile import Host
from nearfar.simulation.cache_misses import Caches, Flushes, OperationCounts

LEVELS = ("l1d", "l2", "l3")
#: Seconds of software that fit in a core's reorder window, if it was not measured: 224 to 512
#: entries, 3 to 5 instructions a cycle, 3 to 4 GHz. The low end is that of integer code on a Zen 5
#: core, where registers run out before entries.
WINDOW = Constant(25e-9, 12e-9, 35e-9)
#: Difference between an evicting and a keeping flush, over a load: bounds of either behavior.
_FEW_SHARE, _MUCH_SHARE = 0.125, 0.25


#: Maximum simulated TLB associativity: full associativity is slow to simulate and misses as often.
_MAX_TLB_WAYS = 16
#: Bytes, and a figure there.
Curve = tuple[tuple[float, Constant], ...]


@dataclass(frozen=True)
class Walks:
    """Cost of a page walk: one figure, or a curve by the bytes in use; and of a miss of the first
    TLB level alone. Seconds."""

    each: Constant | None
    curve: Curve = ()
    second: Constant = NOTHING

    def of_operation(self, counts: OperationCounts, bytes_in_use: float) -> Constant:
        """Seconds for an operation."""
        walks = scaled(self.of_one(bytes_in_use), counts.walks)
        hits = scaled(self.second, max(counts.tlb_misses - counts.walks, 0.0))
        return Constant(walks.value + hits.value, walks.low + hits.low, walks.high + hits.high)

    def of_one(self, bytes_in_use: float) -> Constant:
        """Seconds for a walk."""
        return self.each if self.each is not None else _interpolated(self.curve, bytes_in_use)


@dataclass(frozen=True)
class Held:
    """Bytes of a region that the caches hold, by access pattern: dependent or independent."""

    alone: Curve = ()
    at_once: Curve = ()


@dataclass(frozen=True)
class HostCosts:
    """Seconds of a load by level, of one from near memory, of walks; and the caches to simulate."""

    name: str
    loads: tuple[Constant, ...]
    memory: Constant
    walks: Walks
    caches: Caches
    held: Held = Held()
    window: Constant = WINDOW

    def caches_for(self, touched_bytes: float, *, at_once: bool) -> Caches:
        """Caches as seen by accesses to this many bytes, with variants at the ends of the range."""
        curve = self.held.at_once if at_once else self.held.alone
        if not curve:
            return self.caches
        last = _interpolated(curve, touched_bytes)
        *inner, (_, ways) = self.caches.levels
        others = {int(last.low), int(last.high)} - {int(last.value)}
        return replace(
            self.caches, levels=(*inner, (int(last.value), ways)), last_bytes=tuple(sorted(others))
        )


def scaled(cost: Constant, times: float) -> Constant:
    """A cost times a factor."""
    return Constant(cost.value * times, cost.low * times, cost.high * times)


def _interpolated(curve: Curve, at: float) -> Constant:
    """Interpolate over the logarithm of bytes; constant beyond the ends."""
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
    """Read all costs from a host's file. Raises BadInputError for a missing figure."""
    return HostCosts(
        host.name,
        tuple(_load(host, level) for level in ("l1", "l2", "l3")),
        constant(host, "near_read_latency_ns", 1e-9),
        walks_of(host),
        _caches(host),
        Held(
            _curve(host, "l3_held_by_region_bytes"), _curve(host, "l3_held_at_once_by_region_bytes")
        ),
        constant(host, key, 1e-9) if (key := "reorder_window_ns") in host.figures else WINDOW,
    )


def _load(host: Host, level: str) -> Constant:
    """Latency of a level: in ns, or in cycles of the host."""
    if f"{level}_load_cycles" in host.figures:
        frequency = constant(host, "frequency_hz")
        cycles = constant(host, f"{level}_load_cycles")
        return Constant(
            cycles.value / frequency.value, cycles.low / frequency.high, cycles.high / frequency.low
        )
    return constant(host, f"{level}_load_ns", 1e-9)


def walks_of(host: Host) -> Walks:
    """Page walk costs of a host. Raises BadInputError if it has neither figure nor curve."""
    curve = _curve(host, "page_walk_by_region_ns", 1e-9)
    key = "stlb_hit_ns"
    second = difference(host, key, 1e-9) if key in host.figures else NOTHING
    each = None if curve else constant(host, "page_walk_ns", 1e-9)
    return Walks(each, curve, second)


def _curve(host: Host, key: str, scale: float = 1.0) -> Curve:
    """A curve of a host; empty if missing. Raises BadInputError for a single point."""
    if key not in host.figures:
        return ()
    figure = host.figure(key)
    ranges = figure.ranges or [(p[-1], p[-1]) for p in figure.points or []]
    curve = [
        (point[0], Constant(point[1] * scale, low * scale, high * scale))
        for point, (low, high) in zip(figure.points or [], ranges, strict=True)
    ]
    curve.sort(key=lambda point: point[0])
    if len(curve) < 2:
        raise BadInputError(f"{key} of {host.name} has too few points", "measure the host again")
    return tuple(curve)


def _caches(host: Host) -> Caches:
    levels = tuple(
        (int(host.scalar(f"{level}_bytes")), int(host.scalar(f"{level}_ways"))) for level in LEVELS
    )
    last = {int(size) for size in host.figure("l3_bytes").interval()} - {levels[-1][0]}
    tlb = tuple(
        (
            int(host.scalar(f"{level}_entries")),
            min(int(host.scalar(f"{level}_ways")), _MAX_TLB_WAYS),
        )
        for level in ("dtlb", "stlb")
    )
    return Caches(levels, tlb, flushes=_flushes(host), last_bytes=tuple(sorted(last)))


def _flushes(host: Host) -> Flushes:
    """A flush that keeps its line saves the next store a fetch from memory."""
    keeping, evicting = "near_flush_latency_ns", "near_evicting_flush_latency_ns"
    if keeping not in host.figures or evicting not in host.figures:
        return "both"
    spared = host.scalar(evicting) - host.scalar(keeping)
    load = host.scalar("near_read_latency_ns")
    if spared < _FEW_SHARE * load:
        return "evict"
    return "keep" if spared > _MUCH_SHARE * load else "both"
