"""Counters as functions of the number of operations, and their correlations.

Equation: each column y of a table of counters is one of
  linear       y = a + b·n
  power        y = a·n^b
  logarithmic  y = a + b·ln n
  saturating   y = a·n / (b + n)
by least squares. The form is the linear one, unless another has a clearly smaller root mean square
error on rows left out, one at a time. Coefficients carry 95 % intervals (Student's t on the
covariance of the fit, for ln a where the form is a power). Correlations are Pearson's, over all
columns.
Source: the fits of the Nicosia thesis to counters of a map on DRAM, which chose forms by eye.
Limits: at least four rows; all rows weigh the same, so small n decide little; errors are those of
rows inside of the measured range of n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from nearfar import student
from nearfar.errors import BadInputError
from nearfar.model.minimizing import least_squares
from nearfar.model.results import modelled
from nearfar.model.tables import Row, read_rows, without_repeats
from nearfar.records.figures import FigureModel

OPERATIONS = "operations"
MIN_ROWS = 4
_CONFIDENCE = 0.95
#: Error of another form over that of the straight line, below which it is preferred.
_CLEARLY = 0.8
#: A saturating form that reaches half of its limit beyond so many times the largest n is a line.
_UNBENT = 100

#: A relative error that excludes a form, and that can still be squared.
_HOPELESS = 1e150

_Law = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class _Form:
    """A law with two coefficients; ``start`` guesses them, ``formula`` shows them."""

    law: _Law
    start: Callable[[np.ndarray, np.ndarray], Sequence[float]]
    formula: str
    log_a: bool = False  # the first coefficient is fitted as its logarithm


def _line(x: np.ndarray, y: np.ndarray) -> Sequence[float]:
    slope, base = np.polyfit(x, y, 1)
    return float(base), float(slope)


def _power_start(n: np.ndarray, y: np.ndarray) -> Sequence[float]:
    return _line(np.log(n), np.log(np.maximum(y, max(float(y.max()), 1.0) * 1e-9)))


FORMS: dict[str, _Form] = {
    "linear": _Form(lambda p, n: p[0] + p[1] * n, _line, "{a:.4g} + {b:.4g}·n"),
    "power": _Form(
        lambda p, n: np.exp(np.clip(p[0] + p[1] * np.log(n), -700, 700)),
        _power_start,
        "{a:.4g}·n^{b:.4g}",
        log_a=True,
    ),
    "logarithmic": _Form(
        lambda p, n: p[0] + p[1] * np.log(n),
        lambda n, y: _line(np.log(n), y),
        "{a:.4g} + {b:.4g}·ln n",
    ),
    "saturating": _Form(
        lambda p, n: p[0] * n / (np.abs(p[1]) + n),
        lambda n, y: (1.2 * float(y.max()), float(np.median(n))),
        "{a:.4g}·n / ({b:.4g} + n)",
    ),
}


class CounterFit(FigureModel):
    """One column as a function of n: ``a`` and ``b`` of its form."""

    name: str
    form: str
    formula: str
    a: float
    b: float
    leave_one_out_error: float = Field(description="root mean square over the column's mean")
    other_forms: dict[str, float] = Field(description="the same error of the forms not chosen")


class Correlation(BaseModel):
    """Pearson's correlation of all columns; None where a column is constant."""

    model_config = ConfigDict(extra="forbid")

    columns: list[str]
    matrix: list[list[float | None]]


class CounterFits(FigureModel):
    """All columns of a table."""

    rows: int
    fits: list[CounterFit]
    correlation: Correlation


def read_counters(path: str | Path) -> dict[str, np.ndarray]:
    """Columns by name, operations first. Raises BadInputError naming an invalid cell."""
    rows = read_rows(path, [OPERATIONS])
    names = [name for name in rows[0].cells if name != OPERATIONS]
    if not names:
        raise BadInputError(f"{path} has no column except {OPERATIONS}", "add one for each counter")
    rows = without_repeats(rows, [OPERATIONS], names, zero_allowed=True)
    if len({row.number_of(OPERATIONS) for row in rows}) < MIN_ROWS:
        raise BadInputError(
            f"{path} has fewer than {MIN_ROWS} different numbers of operations",
            "measure at more: a form is chosen by leaving each row out",
        )
    for row in rows:
        _refuse_contradictions(row, names)
    columns = {OPERATIONS: [float(row.count_of(OPERATIONS)) for row in rows]}
    columns |= {name: [row.number_of(name, zero_allowed=True) for row in rows] for name in names}
    return {name: np.array(values) for name, values in columns.items()}


def _refuse_contradictions(row: Row, names: Sequence[str]) -> None:
    """Reject more misses than accesses, and ratios above one."""
    for name in names:
        if name.endswith("_ratio") and row.number_of(name, zero_allowed=True) > 1:
            row.refuse(name, "a ratio is above 1")
        if not name.endswith("_misses"):
            continue
        for whole in (f"{name.removesuffix('_misses')}s", name.removesuffix("_misses")):
            if whole in names and row.number_of(name, zero_allowed=True) > row.number_of(
                whole, zero_allowed=True
            ):
                row.refuse(name, f"contradicts {whole}: more misses than accesses")


def _least_squares(form: _Form, n: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their covariance, in the scale of the data."""
    scale = float(np.abs(y).max()) or 1.0

    def residuals(p: np.ndarray) -> np.ndarray:
        return np.asarray((form.law(p, n) - y) / scale)

    found, slopes = least_squares(residuals, form.start(n, y))
    variance = float((residuals(found) ** 2).sum()) / max(len(n) - 2, 1)
    return found, np.linalg.pinv(slopes.T @ slopes) * variance


def _left_out_error(form: _Form, n: np.ndarray, y: np.ndarray) -> float:
    scale = float(np.mean(np.abs(y))) or 1.0
    squares = []
    for i in range(len(n)):
        kept = np.arange(len(n)) != i
        coefficients, _ = _least_squares(form, n[kept], y[kept])
        off = abs(float(form.law(coefficients, n[i : i + 1])[0] - y[i])) / scale
        squares.append(min(off, _HOPELESS) ** 2)
    return float(np.sqrt(np.mean(squares)))


def fit_column(name: str, n: np.ndarray, y: np.ndarray) -> CounterFit:
    """The form with the lowest leave-one-out error, fitted to all rows."""
    errors = {key: _left_out_error(form, n, y) for key, form in FORMS.items()}
    chosen = min(errors, key=lambda key: errors[key])
    if errors[chosen] > _CLEARLY * errors["linear"]:
        chosen = "linear"
    found, covariance = _least_squares(FORMS[chosen], n, y)
    if chosen == "saturating" and abs(found[1]) > _UNBENT * n.max():
        chosen = "linear"
        found, covariance = _least_squares(FORMS[chosen], n, y)
    form = FORMS[chosen]
    wide = student.quantile((1 + _CONFIDENCE) / 2, max(len(n) - 2, 1))
    margin = wide * np.sqrt(np.diag(covariance))
    figures = {}
    for key, value, half in zip(("a", "b"), found, margin, strict=True):
        triple = (float(value), float(value - half), float(value + half))
        if key == "a" and form.log_a:
            triple = tuple(float(np.exp(np.clip(v, -700, 700))) for v in triple)  # type: ignore[assignment]
        if key == "b" and chosen == "saturating":
            triple = (abs(triple[0]), max(abs(triple[0]) - half, 0.0), abs(triple[0]) + half)
        figures[key] = triple
    a, b = figures["a"][0], figures["b"][0]
    return CounterFit(
        name=name,
        form=chosen,
        formula=form.formula.format(a=a, b=b),
        leave_one_out_error=errors.pop(chosen),
        other_forms=errors,
        **modelled(figures, samples=len(n)),
    )


def _fit_or_refuse(name: str, n: np.ndarray, y: np.ndarray) -> CounterFit:
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # steps that the search reverts
            return fit_column(name, n, y)
    except (ValueError, np.linalg.LinAlgError) as error:
        raise BadInputError(
            f"no form can be fitted to the column {name}: {error}",
            "look for a value far off the others, or leave the column out",
        ) from None


def correlate(columns: dict[str, np.ndarray]) -> Correlation:
    """Correlation of all pairs of columns."""
    constant = {name for name, values in columns.items() if np.ptp(values) == 0}

    def of(first: str, second: str) -> float | None:
        if first in constant or second in constant:
            return None
        return float(np.corrcoef(columns[first], columns[second])[0, 1])

    return Correlation(columns=list(columns), matrix=[[of(x, y) for y in columns] for x in columns])


def fit(columns: dict[str, np.ndarray]) -> CounterFits:
    """Fit every column except the operations."""
    n = columns[OPERATIONS]
    fits = [_fit_or_refuse(name, n, y) for name, y in columns.items() if name != OPERATIONS]
    return CounterFits(rows=len(n), fits=fits, correlation=correlate(columns))
