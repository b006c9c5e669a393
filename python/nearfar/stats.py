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

from nearfar.records.shape import MIN_REPEATS

CONFIDENCE = 0.95
RESAMPLES = 10_000
#: Values closer than this (relative) are treated as equal: they differ by rounding only.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Estimate:
    """One figure computed from repeats.

    ``interval`` is its 95 % interval; None if there are too few repeats. ``low`` and ``high`` are
    the ends of the interval, or else the smallest and the largest repeat: a range for models,
    without a known probability. ``spread`` is the interquartile range over the median.
    """

    value: float
    low: float
    high: float
    samples: int
    spread: float
    statistic: str
    outliers: int = 0
    interval: tuple[float, float] | None = None

    def half_width(self) -> float:
        """Half of the interval, relative to the value; infinite without an interval."""
        if self.interval is None or not self.value:
            return math.inf
        low, high = self.interval
        return (high - low) / 2 / abs(self.value)


def _spread(values: np.ndarray) -> float:
    low, middle, high = np.percentile(values, [25, 50, 75])
    if high == low:
        return 0.0
    return float((high - low) / abs(middle)) if middle else math.inf


def _outliers(values: np.ndarray) -> int:
    """Number of values beyond Tukey's fences (1.5 interquartile ranges outside the quartiles)."""
    low, high = np.percentile(values, [25, 75])
    margin = 1.5 * (high - low)
    return int(np.sum((values < low - margin) | (values > high + margin)))


def _checked(samples: Sequence[float]) -> np.ndarray:
    values = np.asarray(samples, dtype=float)
    if values.size == 0 or not np.all(np.isfinite(values)):
        raise ValueError("an estimate needs at least one sample, all finite")
    return values


def lower_quartile(samples: Sequence[float]) -> Estimate:
    """Lower quartile, for repeats that disturbances only lengthen: between minimum and median."""
    values = _checked(samples)
    low, value, high = (float(v) for v in np.percentile(values, [0, 25, 50]))
    return Estimate(
        value,
        low,
        high,
        values.size,
        _spread(values),
        "lower quartile",
        _outliers(values),
        _order_interval(np.sort(values), 0.25),
    )


def _order_interval(ordered: np.ndarray, quantile: float) -> tuple[float, float] | None:
    """The order statistics that contain a quantile with a probability of at least 95 %, at most
    2.5 % being outside on either side. None if even the extremes do not."""
    n = ordered.size
    least, most = _rank(n, quantile), _rank(n, 1 - quantile)
    if least is None or most is None:
        return None
    return float(ordered[least]), float(ordered[n - 1 - most])


def _rank(n: int, quantile: float) -> int | None:
    """The largest k with P(Binomial(n, quantile) <= k) <= 2.5 %; None if even k = 0 exceeds it."""
    below = 0.0
    for k in range(n):
        below += math.comb(n, k) * quantile**k * (1 - quantile) ** (n - k)
        if below > (1 - CONFIDENCE) / 2:
            return k - 1 if k else None
    return n - 1


def median(samples: Sequence[float]) -> Estimate:
    """Median with the tightest symmetric order-statistic interval that covers at least 95 %.

    The interval [x(k), x(n+1-k)] covers the median with probability 1 - 2 P(Binomial(n, 1/2) < k):
    fewer than six repeats have no interval.
    """
    values = np.sort(_checked(samples))
    interval = _order_interval(values, 0.5)
    low, high = interval or (float(values[0]), float(values[-1]))
    return Estimate(
        float(np.median(values)),
        low,
        high,
        values.size,
        _spread(values),
        "median",
        _outliers(values),
        interval,
    )


def best(samples: Sequence[float]) -> Estimate:
    """The largest value, as STREAM reports rates. An extreme value has no interval."""
    values = _checked(samples)
    top = float(values.max())
    return Estimate(top, top, top, values.size, _spread(values), "best", _outliers(values))


def mean(samples: Sequence[float], seed: int = 1) -> Estimate:
    """Mean with a BCa bootstrap interval of 10,000 resamples; for equal samples, a point.

    Fewer than six repeats have no interval: bootstrap intervals of so few cover far less than 95 %.
    """
    values = _checked(samples)
    average = float(values.mean())
    if values.size < MIN_REPEATS:
        return Estimate(
            average,
            float(values.min()),
            float(values.max()),
            values.size,
            _spread(values),
            "mean",
            _outliers(values),
        )
    low = high = average
    if np.ptp(values) > _EQUAL * np.abs(values).max():
        from scipy.stats import bootstrap

        interval = bootstrap(
            (values,),
            np.mean,
            n_resamples=RESAMPLES,
            method="BCa",
            confidence_level=CONFIDENCE,
            rng=np.random.default_rng(seed),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    return Estimate(
        average, low, high, values.size, _spread(values), "mean", _outliers(values), (low, high)
    )


@dataclass(frozen=True)
class Bounded:
    """A recorded figure: its 95 % interval and the number of repeats."""

    value: float
    low: float
    high: float
    samples: int


def chances(pairs: Sequence[tuple[Bounded, Bounded]]) -> list[float]:
    """For each pair, the two-sided p-value of its ratio under the hypothesis of no change.

    Welch's test on logarithms, from intervals: half an interval is divided by Student's t at 95 %
    for the number of repeats to obtain the standard error. Values must be positive and have at
    least two repeats.
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
    """The p-values corrected for multiple testing (Holm 1979): the probability of a false positive
    among those below 5 % is at most 5 %."""
    order = sorted(range(len(chance)), key=lambda i: chance[i])
    corrected = [0.0] * len(chance)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(chance) - rank) * chance[index]))
        corrected[index] = highest
    return corrected


def ratio_of_pairs(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Median of the ratios of values that were measured in direct succession."""
    if len(numerators) != len(denominators):
        raise ValueError("pairs need as many numerators as denominators")
    with np.errstate(divide="ignore", invalid="ignore"):  # median() rejects a zero denominator
        ratios = _checked(numerators) / _checked(denominators)
    return median(ratios.tolist())


def enough(samples: Sequence[float], tolerance: float) -> bool:
    """Whether the median has an interval within ``tolerance`` (relative) on either side."""
    return median(samples).half_width() <= tolerance
