"""Additional memory traffic of a stencil whose rows do not stay in the cache.

Equation: φ = (lines fetched and written back) / (the least), of the eight-neighbor sweep replayed
through a thread's share of cache, L2 + L3 / threads: 1 to 5/3. 1 is the traffic of a copy, which
also reads, owns and writes back.
Value: midway between LRU replacement, under which rows are kept or evicted as a whole, and random
replacement, under which lines are evicted one by one; both bound it. By hand: three rows of source
and one of target pass
between two uses of a line, so LRU keeps them while four rows fit; at random a line is missed with
p = 1 - e^(-(2 + 2p)·row / share), and φ = 1 + 2p/3.
Source: the layer condition of stencil models; the replay is the native `cache` layer's.
Limits: all threads at equal shares; L2 and its share of the L3 as one cache with the L3's ways,
addresses mapped to sets as they are.
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
    """Traffic midway between LRU and random replacement, which bound it."""

    value: Traffic
    low: Traffic
    high: Traffic


@cache
def traffic(cols: int, element_bytes: int, cache_bytes: int, ways: int) -> TrafficRange:
    """Traffic of a sweep over rows of ``cols`` elements with this much cache for each thread.

    Raises NativeError for fewer than three columns and for caches smaller than a set.
    """
    from nearfar._native import layer_condition_factor

    lru, random = (
        layer_condition_factor(cols, element_bytes, cache_bytes, ways, policy, _SEED)
        for policy in ("lru", "random")
    )
    return TrafficRange(
        Traffic((lru + random) / 2), Traffic(min(lru, random)), Traffic(max(lru, random))
    )
