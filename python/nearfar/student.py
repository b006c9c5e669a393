"""Student's t distribution, for any positive degrees of freedom.

    P(T > t) = I_x(freedom/2, 1/2) / 2  with  x = freedom / (freedom + t²),  t ≥ 0

I is the regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun,
26.5.8 and 26.7.1) evaluated with Lentz's method.
"""

from __future__ import annotations

import math
from functools import lru_cache

_EPSILON = 1e-16
_TINY = 1e-300
_MAX_TERMS = 10_000


def above(t: float, freedom: float) -> float:
    """The probability of a value above ``t``."""
    if t < 0:
        return 1 - above(-t, freedom)
    square = t * t
    if math.isinf(square):
        return 0.0
    return (
        _incomplete_beta(
            freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square)
        )
        / 2
    )


@lru_cache
def quantile(probability: float, freedom: float) -> float:
    """The value below which ``probability`` lies, between 0.5 and 1, by bisection."""
    if not 0.5 <= probability < 1:
        raise ValueError("the probability must be at least 0.5 and below 1")
    tail = 1 - probability
    low, high = 0.0, 1.0
    while above(high, freedom) > tail:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        if above(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b); ``rest`` is 1 - x, given so that it is exact where x is close to 1."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast below
        return 1 - _incomplete_beta(b, a, rest, x)
    scale = a * math.log(x) + b * math.log(rest)
    scale += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale) / a / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d1/(1 + d2/(1 + …)) of 26.5.8."""
    value, upper, lower = 1.0, 1.0, 0.0
    for term in range(1, _MAX_TERMS):
        m = term // 2
        if term % 2:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / ((1 + part * lower) or _TINY)
        upper = (1 + part / upper) or _TINY
        value *= upper * lower
        if abs(upper * lower - 1) < _EPSILON:
            break
    return value
