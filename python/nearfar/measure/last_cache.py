"""The effective size of the last cache: the part that this CPU can use while others use it, too.

Chases over regions R visit each line twice a round, at random times. An LRU cache of C bytes hits
if fewer than C other bytes were visited since the last visit. If the two visits of a line are a
fraction f of a round apart, R·(2f - f²) bytes were visited; f is uniformly distributed. Hence

    h(C) = 1 - √(1 - C/R),    t(R) = h(L2)·t_2 + (h(C) - h(L2))·t_3 + (1 - h(C))·t_memory

where h(C) is the fraction of hits. C and t_3 are fitted to the lower quartiles of sweeps over all
regions. The interval covers bootstrap samples of the sweeps. It also covers the sizes for one chase
and for several concurrent ones, because a program that requests more lines keeps more of a shared
cache. The use by other programs changes within minutes; the interval is wider if all sweeps were
taken in a shorter time. Limits: prefetched streams are not modeled; the latency of caches that are
not LRU rises less sharply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Number of candidate sizes per octave, and of bootstrap samples.
_STEPS, _DRAWS = 24, 200
#: Factor by which the available part of the last cache changes within minutes.
DRIFT = 1.5

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Sweeps:
    """Latencies in ns of a number of concurrent chases."""

    regions: Sequence[int]
    #: One row for each sweep, one column for each region.
    rows: Array
    #: Latency of the second cache, and of memory: one value for each sweep.
    second: Array
    memory: Array

    def drawn(self, picked: np.ndarray[tuple[int, ...], np.dtype[np.int_]]) -> Sweeps:
        """The sweeps with these numbers."""
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
    """The effective size and its interval, from sweeps with different numbers of chases.

    ``short``: whether all sweeps were taken within less than a minute.
    """
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
