"""Additional memory traffic of a stencil whose rows do not stay in the cache.

Equation: φ = (lines fetched and written back) / (the least), of the eight-neighbor sweep replayed
through a thread's share of cache, L2 + L3 / threads: 1 to 5/3. 1 is the traffic of a copy, which
also reads, owns and writes back.
Value: LRU replacement with each page of 4 KiB at a random frame. Three rows of source and one of
target pass between two uses of a line; a line is missed where they bring at least as many lines to
its set as it has ways: p = P(Poisson(ways·4·row / share) ≥ ways), and φ = 1 + 2p/3.
Interval: LRU with sets that fill evenly, which keeps rows as a whole or not at all, and random
replacement: p = 1 - e^(-(2 + 2p)·row / share).
Source: the layer condition of stencil models; the replay is the native `cache` layer's.
Limits: all threads at equal shares; L2 and its share of the L3 as one cache with the L3's ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

_SEED = 1
#: Fraction of reuses that miss, above which loads wait for memory instead of overlapping with work.
_BROKEN = 0.5


@dataclass(frozen=True)
class Traffic:
    """Memory traffic over that of a copy, for one replacement policy."""

    factor: float

    @property
    def broken(self) -> bool:
        """Whether most reuses of a row miss the cache."""
        return (self.factor - 1) * 3 / 2 > _BROKEN


@dataclass(frozen=True)
class TrafficRange:
    """Traffic of LRU replacement with scattered pages, and bounds of other placements."""

    value: Traffic
    low: Traffic
    high: Traffic


@cache
def traffic(cols: int, element_bytes: int, cache_bytes: int, ways: int) -> TrafficRange:
    """Traffic of a sweep over rows of ``cols`` elements with this much cache for each thread.

    Raises NativeError for fewer than three columns and for caches smaller than a set.
    """
    from nearfar._native import layer_condition_factor

    value, even, random = (
        layer_condition_factor(cols, element_bytes, cache_bytes, ways, policy, scattered, _SEED)
        for policy, scattered in (("lru", True), ("lru", False), ("random", True))
    )
    ends = sorted((value, even, random))
    return TrafficRange(Traffic(value), Traffic(ends[0]), Traffic(ends[-1]))
