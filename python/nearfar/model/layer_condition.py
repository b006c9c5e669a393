"""How much more memory traffic a stencil makes when its rows do not stay in the cache.

Equation: φ = (3 + 2p) / 3, in lines of 8-neighbour sweeps over two arrays: one source row read, one
target row read for ownership and written back; p of the two older source rows come from memory
again. Three rows of source and one of target pass between two uses of a line:
  LRU     p = 0 while they fit a thread's share of cache, else 1
  random  a line survives with e^-(misses in between), so p = 1 - exp(-(2 + 2p)·row / share)
The value lies midway between both, which bound it; the share is L2 + L3 / threads.
Source: the layer condition of stencil models, traffic counted with write-allocate as the copy's
own 24 bytes an element of 8 (read, owned, written) are, so that φ = 1 is the copy.
Limits: one sweep at a time, all threads at equal shares, rows much longer than a line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Reuses that miss, beyond which loads wait for memory instead of being hidden behind work.
_BROKEN = 0.5
_ROWS_BETWEEN_USES = 4


@dataclass(frozen=True)
class Traffic:
    """Memory traffic over the copy's, under one replacement policy."""

    factor: float

    @property
    def broken(self) -> bool:
        """Whether most reuses of a row come from memory again."""
        return (self.factor - 1) * 3 / 2 > _BROKEN


@dataclass(frozen=True)
class TrafficRange:
    """Traffic midway between LRU and random replacement, which bound it."""

    value: Traffic
    low: Traffic
    high: Traffic


def traffic(cols: int, element_bytes: int, cache_bytes: float) -> TrafficRange:
    """Of a sweep over rows of ``cols`` elements with so much cache for a thread."""
    row = cols * element_bytes / cache_bytes
    lru = 1.0 if _ROWS_BETWEEN_USES * row > 1 else 0.0
    factors = [1 + 2 * p / 3 for p in (lru, _random_misses(row))]
    return TrafficRange(Traffic(sum(factors) / 2), Traffic(min(factors)), Traffic(max(factors)))


def _random_misses(row: float) -> float:
    """Fixed point of the random policy's equation; it contracts from above for every row."""
    missing = 1.0
    for _ in range(200):
        missing = 1 - math.exp(-(2 + 2 * missing) * row)
    return missing
