"""Statistics and fits that nearfar computes itself, compared with SciPy, which only tests need."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize
from scipy import stats as scipy_stats

from nearfar import stats, student
from nearfar.measure.persistence import rising_line
from nearfar.model.counter_fits import FORMS
from nearfar.model.minimizing import least_squares, minimum_between
from nearfar.place.knapsack import exactly, fits, gain_of, max_bytes

SEEDS = st.integers(0, 2**32 - 1)


@given(st.floats(0, 1e4), st.floats(1, 1e5))
def test_probabilities_of_students_t(t: float, freedom: float) -> None:
    """SciPy 1.18 has 0.5 + 6.7e-9 for 1.8e-8 and one degree, where 0.5 + atan(t) / pi is 5.7e-9."""
    expected = scipy_stats.t.sf(t, freedom)
    assert student.above(t, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-280)
    assert student.above(-t, freedom) == pytest.approx(1 - expected, rel=1e-8)
    assert student.above(-t, freedom) == pytest.approx(1 - student.above(t, freedom), rel=1e-9)


@given(st.sampled_from([0.5, 0.8, 0.95, 0.975, 0.995, 0.9999]), st.floats(1, 1e5))
def test_quantiles_of_students_t(probability: float, freedom: float) -> None:
    expected = scipy_stats.t.ppf(probability, freedom)
    assert student.quantile(probability, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("probability", [0.0, 0.49, 1.0, math.nan])
def test_quantiles_outside_their_range_are_refused(probability: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        student.quantile(probability, 3)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(6, 60), st.sampled_from(["normal", "lognormal", "two values"]))
def test_bootstrap_intervals_of_the_mean(seed: int, count: int, shape: str) -> None:
    random = np.random.default_rng(seed)
    samples: dict[str, NDArray[np.float64]] = {
        "normal": random.normal(100, 3, count),
        "lognormal": random.lognormal(0, 1, count),
        "two values": random.choice(np.array([1.0, 2.0]), count),
    }
    values = samples[shape]
    assume(np.ptp(values) > 0)
    expected = scipy_stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=stats.RESAMPLES,
        method="BCa",
        confidence_level=stats.CONFIDENCE,
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = stats.mean(values.tolist()).interval
    assert found == pytest.approx((expected.low, expected.high), rel=1e-12)


def _bounded(value: float, half: float, samples: int) -> stats.Bounded:
    return stats.Bounded(value, value * (1 - half), value * (1 + half), samples)


BOUNDED = st.builds(_bounded, st.floats(1e-3, 1e9), st.floats(1e-6, 0.5), st.integers(2, 500))


@given(st.lists(st.tuples(BOUNDED, BOUNDED), min_size=1, max_size=4))
def test_p_values_of_a_change(pairs: list[tuple[stats.Bounded, stats.Bounded]]) -> None:
    table = np.array([[(b.value, b.low, b.high, b.samples - 1) for b in pair] for pair in pairs])
    value, low, high, freedom = np.moveaxis(table, 2, 0)
    error = ((high - low) / 2 / value / scipy_stats.t.ppf(0.975, freedom)) ** 2
    both = error.sum(axis=1)
    welch = np.maximum(both**2 / (error**2 / freedom).sum(axis=1), 1)
    distance = np.abs(np.log(value[:, 1] / value[:, 0])) / np.sqrt(both)
    expected = 2 * scipy_stats.t.sf(distance, welch)
    assert stats.p_values(pairs) == pytest.approx(expected.tolist(), rel=1e-6, abs=1e-200)


@given(
    st.lists(
        st.tuples(st.integers(1, 64), st.floats(-1e3, 1e3)),
        min_size=2,
        max_size=8,
        unique_by=lambda point: point[0],
    )
)
def test_lines_without_negative_coefficients(points: list[tuple[int, float]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    shape = np.column_stack([np.ones(len(x)), x])
    expected, distance = optimize.nnls(shape, y)
    base, slope = rising_line(x.tolist(), y.tolist())
    assert base >= 0
    assert slope >= 0
    found = float(np.linalg.norm(base + slope * x - y))
    assert found == pytest.approx(distance, rel=1e-7, abs=1e-7)
    size = float(np.abs(y).max())
    assert (base, slope) == pytest.approx(tuple(expected), rel=1e-6, abs=1e-7 * max(size, 1.0))


@given(st.floats(-5, 15), st.floats(0.1, 10))
def test_minima_between_bounds(centre: float, steepness: float) -> None:
    def function(x: float) -> float:
        return math.cosh(steepness * (x - centre) / 10)

    expected = optimize.minimize_scalar(
        function, bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-9}
    )
    found = minimum_between(function, 0.0, 10.0)
    assert 0 <= found <= 10
    assert found == pytest.approx(float(expected.x), abs=2e-5)


@settings(max_examples=40, deadline=None)
@given(
    SEEDS,
    st.sampled_from(sorted(FORMS)),
    st.integers(4, 20),
    st.floats(0, 0.1),
    st.floats(-2, 2),
)
def test_fits_of_counters(seed: int, name: str, count: int, noise: float, power: float) -> None:
    random = np.random.default_rng(seed)
    n = np.sort(random.choice(np.arange(1, 500), count, replace=False)) * 1000.0
    y = 50 * (n / 1000) ** power * (1 + noise * random.normal(size=count))
    assume(y.min() > 0)
    assume(name != "saturating" or power > 0.1)  # its best fit to a falling column has a pole
    form = FORMS[name]
    scale = float(np.abs(y).max())

    def residuals(p: np.ndarray) -> np.ndarray:
        return np.asarray((form.law(p, n) - y) / scale)

    start = form.start(n, y)
    expected = optimize.least_squares(residuals, start, x_scale="jac", method="trf")
    found, _ = least_squares(residuals, start)
    # not worse than SciPy, which stops at a relative change of 1e-8
    assert (residuals(found) ** 2).sum() <= 2 * expected.cost * (1 + 1e-6) + 1e-12


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(10, 30), st.floats(0.1, 0.9))
def test_choices_of_near_sites(seed: int, count: int, share: float) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(0, 1000, (count, 5)).astype(float)
    benefit = random.integers(1, 1000, count).astype(float)
    budget = share * max_bytes(frozenset(range(count)), sizes)
    expected = optimize.milp(
        -benefit,
        integrality=np.ones(count, dtype=np.int64),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(sizes.T / budget, ub=np.ones(5)),
        options={"mip_rel_gap": 1e-3},
    )
    found = exactly(benefit.tolist(), sizes, budget)
    assert fits(found.near, sizes, budget)
    if found.exact and expected.status == 0:
        assert gain_of(found.near, benefit.tolist()) >= -float(expected.fun) * 0.999 - 1e-6
