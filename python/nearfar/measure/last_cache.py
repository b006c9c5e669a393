"""The effective size of the last cache: what of it this CPU gets, next to all of its neighbors.

Chases over regions R that visit each line twice a round, at random times. An LRU cache of C bytes
has a line again if fewer than C other bytes were visited in between. For a line whose two visits
are a fraction f of a round apart, that is R·(2f - f²), and f is uniform, so that

    h(C) = 1 - √(1 - C/R),    t(R) = h(L2)·t_2 + (h(C) - h(L2))·t_3 + (1 - h(C))·t_memory

C and t_3 are fitted to the lower quartiles of sweeps over all regions. The interval comes from
sweeps that are drawn again, and from chases one by one against several at once: the more a program
requests, the more it keeps of a cache that it shares. What neighbors use changes within minutes, so
that sweeps of a shorter time widen the interval. Limits: prefetched streams are not modeled, and
caches that are not LRU bend the curve less sharply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Candidate sizes an octave, and sweeps drawn again.
_STEPS, _DRAWS = 24, 200
#: Factor by which the part of the last cache that neighbors leave changes within minutes.
DRIFT = 1.5

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Sweeps:
    """Latencies in ns of a number of concurrent chases: a row a sweep, a column a region; and those
    of the second cache and of memory, one a sweep."""

    regions: Sequence[int]
    rows: Array
    second: Array
    memory: Array

    def drawn(self, picked: np.ndarray[tuple[int, ...], np.dtype[np.int_]]) -> Sweeps:
        """Some of the sweeps."""
        return Sweeps(self.regions, self.rows[picked], self.second[picked], self.memory[picked])


def fit(sweeps: Sweeps, l2_bytes: float, max_bytes: float) -> float:
    """The effective size in bytes, between the second cache's and the reported one."""
    regions = np.array(sweeps.regions, dtype=float)
    times = np.percentile(sweeps.rows, 25, axis=0)
    second, memory = np.percentile(sweeps.second, 25), np.percentile(sweeps.memory, 25)
    candidates = np.geomspace(
        l2_bytes, max_bytes, max(round(np.log2(max_bytes / l2_bytes) * _STEPS), 1) + 1
    )
    in_second = _hits(l2_bytes, regions)

    def misfit(size: float) -> float:
        held = _hits(size, regions)
        weight = (held - in_second) / times
        rest = 1 - (in_second * second + (1 - held) * memory) / times
        square = float(weight @ weight)
        third = float(weight @ rest) / square if square > 0 else float(second)
        third = min(max(third, float(second)), float(memory) / 2)
        return float(np.abs(rest - weight * third).sum())

    return float(min(candidates, key=misfit))


def _hits(size: float, regions: Array) -> Array:
    hits: Array = 1 - np.sqrt(np.maximum(1 - size / regions, 0.0))
    return hits


def interval(
    groups: Sequence[Sweeps], l2_bytes: float, max_bytes: float, *, short: bool, seed: int
) -> tuple[float, float, float]:
    """Value, low and high of the size, over numbers of concurrent chases; ``short``: the sweeps
    took less than the minutes in which neighbors change."""
    random = np.random.default_rng(seed)
    values, drawn = [], []
    for sweeps in groups:
        values.append(fit(sweeps, l2_bytes, max_bytes))
        count = len(sweeps.rows)
        picks = random.integers(0, count, (_DRAWS, count))
        drawn += [fit(sweeps.drawn(picked), l2_bytes, max_bytes) for picked in picks]
    value = float(np.exp(np.mean(np.log(values))))
    low, high = np.percentile(drawn, [2.5, 97.5])
    widening = DRIFT if short else 1.0
    step = 2 ** (1 / _STEPS)
    low = max(min(float(low), *values) / widening / step, l2_bytes)
    high = min(max(float(high), *values) * widening * step, max_bytes)
    return value, low, high
