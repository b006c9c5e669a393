"""Statistics of repeated measurements.

The interval of a median consists of order statistics; that of a mean is a BCa bootstrap interval. A
ratio is the median of the ratios of paired values, or that of the medians if the pairs are few.
Outliers are counted and never dropped.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from nearfar import student
from nearfar.records.figures import MIN_REPEATS, RATIO_OF_MEDIANS

CONFIDENCE = 0.95
RESAMPLES = 10_000
#: Values closer than this (relative) are treated as equal: they differ by rounding only.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Estimate:
    """One figure computed from repeats.

    ``interval`` is the 95 % interval; None if there are too few repeats. ``low`` and ``high`` are
    its ends. Without an interval they are the smallest and the largest repeat, a range that models
    use and that has no known probability. ``spread`` is the interquartile range over the median.
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
    """Lower quartile: for times that disturbances can only lengthen.

    It is less sensitive to disturbances than the median, and to single values than the minimum.
    """
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
    """Two order statistics that enclose a quantile with a probability of at least 95 %.

    The quantile is below, and above, with a probability of at most 2.5 % each. None if not even the
    smallest and the largest value enclose it so.
    """
    n = ordered.size
    least, most = _rank(n, quantile), _rank(n, 1 - quantile)
    if least is None or most is None:
        return None
    return float(ordered[least]), float(ordered[n - 1 - most])


def _rank(n: int, quantile: float) -> int | None:
    """The largest k with P(Binomial(n, quantile) <= k) <= 2.5 %; None if there is no such k."""
    below = 0.0
    for k in range(n):
        below += math.comb(n, k) * quantile**k * (1 - quantile) ** (n - k)
        if below > (1 - CONFIDENCE) / 2:
            return k - 1 if k else None
    return n - 1


def median(samples: Sequence[float]) -> Estimate:
    """Median with the tightest symmetric order-statistic interval that covers at least 95 %.

    The interval [x(k), x(n+1-k)] covers the median with probability 1 - 2 P(Binomial(n, 1/2) < k).
    For fewer than six repeats this is below 95 % even with k = 1, so they have no interval.
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
    """Mean with a BCa bootstrap interval from 10,000 resamples.

    The interval of equal values is the value. Fewer than six repeats have no interval: a bootstrap
    interval of so few covers the mean with far less than 95 %.
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
        low, high = _bca_interval(values, seed)
    return Estimate(
        average, low, high, values.size, _spread(values), "mean", _outliers(values), (low, high)
    )


def _bca_interval(values: np.ndarray, seed: int) -> tuple[float, float]:
    """Bias-corrected and accelerated bootstrap interval of the mean (Efron 1987, equation 6.8).

    The acceleration comes from the jackknife.
    """
    drawn = np.random.default_rng(seed).integers(0, values.size, (RESAMPLES, values.size))
    means = values[drawn].mean(axis=1)
    average = values.mean()
    normal = NormalDist()
    below = (np.count_nonzero(means < average) + np.count_nonzero(means <= average)) / 2
    bias = normal.inv_cdf(below / RESAMPLES)
    left_out = (values.sum() - values) / (values.size - 1)
    slopes = left_out.mean() - left_out
    acceleration = float((slopes**3).sum() / (6 * (slopes**2).sum() ** 1.5))

    def percentile(probability: float) -> float:
        shifted = bias + normal.inv_cdf(probability)
        return 100 * normal.cdf(bias + shifted / (1 - acceleration * shifted))

    tail = (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, [percentile(tail), percentile(1 - tail)])
    return float(low), float(high)


@dataclass(frozen=True)
class Bounded:
    """A recorded figure: its 95 % interval and the number of repeats."""

    value: float
    low: float
    high: float
    samples: int


def p_values(pairs: Sequence[tuple[Bounded, Bounded]]) -> list[float]:
    """For each pair, the two-sided p-value of its ratio under the hypothesis of no change.

    Welch's test on logarithms. The standard error of a figure is half of its interval divided by
    the 95 % quantile of Student's t for its number of repeats. Values must be positive and have at
    least two repeats.
    """
    return [_p_value(*pair) for pair in pairs]


def _p_value(one: Bounded, other: Bounded) -> float:
    freedom = [figure.samples - 1 for figure in (one, other)]
    variances = [
        ((figure.high - figure.low) / 2 / figure.value / student.quantile((1 + CONFIDENCE) / 2, n))
        ** 2
        for figure, n in zip((one, other), freedom, strict=True)
    ]
    both = max(sum(variances), sys.float_info.min)
    spread = sum(v**2 / n for v, n in zip(variances, freedom, strict=True))
    welch = both**2 / max(spread, sys.float_info.min)
    distance = abs(math.log(other.value / one.value)) / math.sqrt(both)
    return 2 * student.above(distance, max(welch, 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for multiple testing (Holm 1979).

    The probability that any corrected value below 5 % is a false positive is at most 5 %.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def ratio_of_pairs(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Median of the ratios of values that were measured in direct succession.

    With too few pairs for an interval, a disturbed one decides: then it is the ratio of the
    medians, which cannot contradict the two figures.
    """
    if len(numerators) != len(denominators):
        raise ValueError("pairs need as many numerators as denominators")
    with np.errstate(divide="ignore", invalid="ignore"):  # median() rejects a zero denominator
        ratios = _checked(numerators) / _checked(denominators)
    found = median(ratios.tolist())
    if found.samples >= MIN_REPEATS:
        return found
    value = median(numerators).value / median(denominators).value
    low, high = min(found.low, value), max(found.high, value)
    return replace(found, value=value, low=low, high=high, statistic=RATIO_OF_MEDIANS)


def enough(samples: Sequence[float], tolerance: float) -> bool:
    """Whether the median has an interval within ``tolerance`` (relative) on either side."""
    return median(samples).half_width() <= tolerance
