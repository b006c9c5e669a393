"""Statistics of repeated measurements.

Medians carry order-statistic intervals, means BCa bootstrap intervals; ratios come from pairs.
Outliers are counted and named, never dropped. SciPy is imported only where it is used: it takes a
quarter of a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 10_000
#: Values closer than this, relative, are one value that was rounded: no bootstrap tells them apart.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Estimate:
    """One figure out of repeats.

    ``low`` and ``high`` bound it at 95 % (for fewer than 6 repeats: the smallest and largest value,
    the widest an order-statistic interval can be). ``spread`` is the interquartile range over the
    median.
    """

    value: float
    low: float
    high: float
    samples: int
    spread: float
    statistic: str
    outliers: int = 0

    def half_width(self) -> float:
        """Half of the interval, relative to the value."""
        return (self.high - self.low) / 2 / abs(self.value) if self.value else math.inf


def _spread(values: np.ndarray) -> float:
    low, middle, high = np.percentile(values, [25, 50, 75])
    if high == low:
        return 0.0
    return float((high - low) / abs(middle)) if middle else math.inf


def _outliers(values: np.ndarray) -> int:
    """How many lie beyond Tukey's fences (1.5 interquartile ranges outside the quartiles)."""
    low, high = np.percentile(values, [25, 75])
    margin = 1.5 * (high - low)
    return int(np.sum((values < low - margin) | (values > high + margin)))


def _checked(samples: Sequence[float]) -> np.ndarray:
    values = np.asarray(samples, dtype=float)
    if values.size == 0 or not np.all(np.isfinite(values)):
        raise ValueError("an estimate needs at least one sample, all finite")
    return values


def lower_quartile(samples: Sequence[float]) -> Estimate:
    """Of repeats that disturbances only lengthen: between the least of them and their median."""
    values = _checked(samples)
    low, value, high = (float(v) for v in np.percentile(values, [0, 25, 50]))
    return Estimate(
        value, low, high, values.size, _spread(values), "lower quartile", _outliers(values)
    )


def median(samples: Sequence[float]) -> Estimate:
    """Median with the tightest symmetric order-statistic interval that covers at least 95 %.

    The interval [x(k), x(n+1-k)] covers the median with probability 1 - 2 P(Binomial(n, 1/2) < k).
    """
    values = np.sort(_checked(samples))
    n = values.size
    rank = 0
    below = 0.0  # P(Binomial(n, 1/2) <= rank)
    for k in range(n // 2):
        below += math.comb(n, k) * 0.5**n
        if 1 - 2 * below < CONFIDENCE:
            break
        rank = k
    return Estimate(
        float(np.median(values)), float(values[rank]), float(values[n - 1 - rank]), n,
        _spread(values), "median", _outliers(values),
    )  # fmt: skip


def best(samples: Sequence[float]) -> Estimate:
    """The largest value, as STREAM reports rates. An extreme has no interval."""
    values = _checked(samples)
    top = float(values.max())
    return Estimate(top, top, top, values.size, _spread(values), "best", _outliers(values))


def mean(samples: Sequence[float], seed: int = 1) -> Estimate:
    """Mean with a BCa bootstrap interval of 10,000 resamples; of equal samples, a point."""
    values = _checked(samples)
    average = float(values.mean())
    low = high = average
    if np.ptp(values) > _EQUAL * np.abs(values).max():
        from scipy.stats import bootstrap

        interval = bootstrap(
            (values,), np.mean, n_resamples=RESAMPLES, method="BCa", confidence_level=CONFIDENCE,
            rng=np.random.default_rng(seed),
        ).confidence_interval  # fmt: skip
        low, high = float(interval.low), float(interval.high)
    return Estimate(average, low, high, values.size, _spread(values), "mean", _outliers(values))


@dataclass(frozen=True)
class Bounded:
    """A figure as it was written down: its 95 % interval, and how many repeats are behind it."""

    value: float
    low: float
    high: float
    samples: int


def chances(pairs: Sequence[tuple[Bounded, Bounded]]) -> list[float]:
    """Of each pair: how likely so large a ratio is where nothing changed (two-sided).

    Welch's test on logarithms, from intervals: half an interval is taken for as many standard
    errors as Student's t has at 95 % for its number of repeats. Values must be positive, and of two
    repeats at least.
    """
    from scipy.stats import t

    if not pairs:
        return []
    table = np.array([[(b.value, b.low, b.high, b.samples - 1) for b in pair] for pair in pairs])
    value, low, high, freedom = np.moveaxis(table, 2, 0)
    error = ((high - low) / 2 / value / t.ppf((1 + CONFIDENCE) / 2, freedom)) ** 2
    both = np.maximum(error.sum(axis=1), np.finfo(float).tiny)
    welch = both**2 / np.maximum((error**2 / freedom).sum(axis=1), np.finfo(float).tiny)
    distance = np.abs(np.log(value[:, 1] / value[:, 0])) / np.sqrt(both)
    return [float(p) for p in 2 * t.sf(distance, np.maximum(welch, 1))]


def holm(chance: Sequence[float]) -> list[float]:
    """The same probabilities corrected for their number (Holm 1979): to call all of them changes
    that stay below 5 % is to be wrong about any with a probability of at most 5 %."""
    order = sorted(range(len(chance)), key=lambda i: chance[i])
    corrected = [0.0] * len(chance)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(chance) - rank) * chance[index]))
        corrected[index] = highest
    return corrected


def ratio_of_pairs(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Median of the ratios of values measured one right after the other."""
    if len(numerators) != len(denominators):
        raise ValueError("pairs need as many numerators as denominators")
    with np.errstate(divide="ignore", invalid="ignore"):  # a zero below is refused by median()
        ratios = _checked(numerators) / _checked(denominators)
    return median(ratios.tolist())


def enough(samples: Sequence[float], tolerance: float, least: int = 5) -> bool:
    """Whether the median is known to within ``tolerance`` (relative), from at least ``least``."""
    return len(samples) >= least and median(samples).half_width() <= tolerance
