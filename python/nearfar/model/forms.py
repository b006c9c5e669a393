"""Speed of a thread as a function of the threads on its side: a family of forms, and the choice.

Equation: ln x(t) = ln a + Σ c_i·g_i(t), with one of
  power        g = ln t          x = a·t^c, the power law of the published fits
  quarter      g = t^(1/4)       between the power law and
  root         g = t^(1/2)         the exponential: Box and Cox's ladder
  exponential  g = t             x = a·e^(c·t)
  bent         g = ln t, t       a power law that an exponential bends
Source: power laws after the Oslo competition tables (design, near-far-work); the ladder between
them because the published near columns fall as t^-b in one table and linearly in another.
Choice: `quarter`, the middle, unless another form clearly beats its leave-one-out error. Choosing
the least error alone is worse on rows it did not see: four rows of five often look like a pure
power law.
Limits: at least three rows, five for more than the middle form; made for the inside of the range
of t that was measured, not for beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

_Basis = Callable[[np.ndarray], list[np.ndarray]]
BASES: dict[str, _Basis] = {
    "power": lambda t: [np.log(t)],
    "quarter": lambda t: [t**0.25],
    "root": lambda t: [np.sqrt(t)],
    "exponential": lambda t: [t],
    "bent": lambda t: [np.log(t), t],
}
_MIDDLE = "quarter"
#: A two-coefficient form is preferred below this fraction of the middle form's error.
_CLEARLY = 0.6
#: A third coefficient must lower the leave-one-out error by a fifth.
_WORTH = 0.8
MIN_ROWS = 3


@dataclass(frozen=True)
class Form:
    """One member of the family with its coefficients, ln a first."""

    name: str
    coefficients: tuple[float, ...]

    def __call__(self, threads: float) -> float:
        """Speed of a thread when ``threads`` run on its side."""
        return float(self.at([threads])[0])

    def at(self, threads: Sequence[float]) -> np.ndarray:
        """Speeds at several thread counts; infinite on overflow."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(_design(self.name, threads) @ np.array(self.coefficients)))


def coefficients_of(name: str) -> int:
    """Number of coefficients of a form."""
    return 1 + len(BASES[name](np.ones(1)))


def _design(name: str, threads: Sequence[float]) -> np.ndarray:
    t = np.asarray(threads, dtype=float)
    return np.stack([np.ones_like(t), *BASES[name](t)], axis=1)


def fit_form(name: str, threads: Sequence[float], speeds: Sequence[float]) -> Form:
    """Least squares of ln x."""
    found = np.linalg.lstsq(_design(name, threads), np.log(np.asarray(speeds)), rcond=None)[0]
    return Form(name, tuple(float(c) for c in found))


_Fit = Callable[[Sequence[float], Sequence[float]], Form]


def errors_left_out(
    fit: _Fit, threads: Sequence[float], speeds: Sequence[float], leave: int
) -> list[float]:
    """Relative errors on rows left out of ``fit``, for every combination of left-out rows."""
    rows = range(len(threads))
    errors = []
    for out in combinations(rows, leave):
        kept = [i for i in rows if i not in out]
        form = fit([threads[i] for i in kept], [speeds[i] for i in kept])
        errors += [form(threads[i]) / speeds[i] - 1 for i in out]
    return errors


def _candidates(rows: int) -> Iterator[str]:
    """Forms with fewer coefficients than rows after one is left out; always the middle form."""
    for name in BASES:
        if name == _MIDDLE or rows - 1 > coefficients_of(name):
            yield name


def choose(threads: Sequence[float], speeds: Sequence[float]) -> Form:
    """The middle form, or another one with a clearly lower mean leave-one-out error."""
    mean: dict[str, float] = {}
    for name in _candidates(len(threads)):

        def fit(t: Sequence[float], x: Sequence[float], name: str = name) -> Form:
            return fit_form(name, t, x)

        mean[name] = float(np.mean(np.abs(errors_left_out(fit, threads, speeds, 1))))
    chosen = min((name for name in mean if name != "bent"), key=lambda name: mean[name])
    if mean[chosen] > _CLEARLY * mean[_MIDDLE]:
        chosen = _MIDDLE
    if mean.get("bent", np.inf) < _WORTH * mean[chosen]:
        chosen = "bent"
    return fit_form(chosen, threads, speeds)
