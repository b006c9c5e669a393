from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar import stats

MEASURED = st.floats(1e-12, 1e12)


@pytest.mark.parametrize(("n", "rank"), [(6, 0), (9, 1), (15, 3), (25, 7), (100, 39)])
def test_ranks_of_the_interval_are_those_of_the_sign_test(n: int, rank: int) -> None:
    # Tabulated for the sign test at 5 %, two-sided: the largest number of differing signs at which
    # it rejects, e.g. 0 of 6, 1 of 9, 3 of 15, 7 of 25, 39 of 100.
    found = stats.median([float(x) for x in range(n)])
    assert found.interval == (found.low, found.high) == (rank, n - 1 - rank)


@pytest.mark.parametrize("estimate", [stats.median, stats.mean, stats.lower_quartile])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_than_six_repeats_have_no_interval(
    estimate: Callable[[list[float]], stats.Estimate], n: int
) -> None:
    found = estimate([float(x) for x in range(n)])
    assert found.interval is None
    assert found.half_width() == math.inf
    assert found.samples == n


def test_models_still_get_the_range_of_few_repeats() -> None:
    found = stats.median([float(x) for x in range(5)])
    assert (found.low, found.high) == (0, 4)


def test_few_repeats_are_never_enough() -> None:
    assert not stats.enough([1.0] * 5, 0.5)
    assert stats.enough([1.0] * 6, 0.5)


@pytest.mark.parametrize(("n", "has"), [(12, False), (13, True), (40, True)])
def test_the_interval_of_the_lower_quartile_covers_at_least_95_percent(n: int, has: bool) -> None:
    draws = np.random.default_rng(13).uniform(size=(4000, n)).tolist()
    found = [stats.lower_quartile(draw).interval for draw in draws]
    assert all((interval is not None) == has for interval in found)
    covered = [pair[0] <= 0.25 <= pair[1] for pair in found if pair is not None]
    assert not covered or np.mean(covered) > 0.94


@pytest.mark.parametrize("n", [6, 7, 11, 30])
def test_the_interval_of_the_median_covers_at_least_95_percent(n: int) -> None:
    draws = np.random.default_rng(11).lognormal(size=(4000, n))
    intervals = [stats.median(draw).interval for draw in draws.tolist()]
    covered = [pair is not None and pair[0] <= 1.0 <= pair[1] for pair in intervals]
    # 4000 trials: standard deviation 0.35 %
    assert np.mean(covered) > 0.94
    if n >= 6:
        assert np.mean(covered) < 0.99


def test_the_interval_of_the_mean_covers_about_95_percent() -> None:
    draws = np.random.default_rng(12).exponential(size=(120, 25)).tolist()
    covered = [e.low <= 1.0 <= e.high for e in map(stats.mean, draws)]
    assert np.mean(covered) > 0.86  # BCa undercovers at 25 skewed samples; 120 trials


def test_the_interval_of_the_mean_is_scipys_and_repeats() -> None:
    samples = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    found = stats.mean(samples, seed=7)
    assert found == stats.mean(samples, seed=7)
    assert found.value == pytest.approx(sum(samples) / 6)
    assert found.low < found.value < found.high
    # skewed to the right: so is the interval, which a symmetric one would not be
    assert found.high - found.value > found.value - found.low


def test_equal_samples_are_a_point() -> None:
    for estimate in (stats.mean, stats.median, stats.best):
        found = estimate([2.5] * 8)
        assert (found.value, found.low, found.high, found.spread) == (2.5, 2.5, 2.5, 0)


def test_best_has_no_interval() -> None:
    found = stats.best([1.0, 5.0, 3.0] * 3)
    assert found.interval is None
    assert (found.value, found.low, found.high, found.statistic) == (5, 5, 5, "best")


def test_outliers_are_counted_and_kept() -> None:
    found = stats.mean([10.0, 10.1, 9.9, 10.0, 10.2, 9.8, 100.0])
    assert found.outliers == 1
    assert found.value > 20


def test_spread_is_the_interquartile_range_over_the_median() -> None:
    assert stats.median([1.0, 2.0, 3.0, 4.0, 5.0]).spread == pytest.approx(2 / 3)
    assert stats.median([-1.0, 0.0, 1.0]).spread == math.inf


def test_ratios_come_from_pairs() -> None:
    # The machine slows down tenfold on the way; the ratio of each pair stays 2.
    slow = [2.0, 4.0, 8.0, 12.0, 16.0, 20.0]
    fast = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    found = stats.ratio_of_pairs(slow, fast)
    assert (found.value, found.low, found.high) == (2, 2, 2)
    with pytest.raises(ValueError, match="pairs"):
        stats.ratio_of_pairs([1.0], [1.0, 2.0])


@pytest.mark.parametrize("samples", [[], [math.nan], [1.0, math.inf], [1.0, -math.inf, 2.0]])
@pytest.mark.parametrize("estimate", [stats.median, stats.mean, stats.best])
def test_a_sample_that_is_not_finite_is_refused(estimate: object, samples: Sequence[float]) -> None:
    assert callable(estimate)
    with pytest.raises(ValueError, match="finite"):
        estimate(samples)


def test_a_ratio_of_few_pairs_agrees_with_the_medians() -> None:
    """Another program slowed down one side of each pair but one."""
    slow, fast = [10.0, 2.0, 2.0], [1.0, 4.0, 4.2]
    few = stats.ratio_of_pairs(slow, fast)
    assert (few.value, few.statistic) == (2.0 / 4.0, "ratio of medians")
    assert few.low <= few.value <= few.high == 10
    assert few.interval is None
    enough = stats.ratio_of_pairs(slow * 2, fast * 2)
    assert (enough.value, enough.statistic) == (0.5, "median")


def test_a_ratio_over_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        stats.ratio_of_pairs([1.0, 2.0], [1.0, 0.0])


@given(st.lists(MEASURED, min_size=1, max_size=60))
def test_a_median_is_in_its_interval_in_any_order(samples: list[float]) -> None:
    found = stats.median(samples)
    assert found.low <= found.value <= found.high
    assert min(samples) <= found.low
    assert found.high <= max(samples)
    assert found == stats.median(samples[::-1])


def test_enough() -> None:
    steady = [1.0, 1.001, 0.999, 1.0, 1.0, 1.0]
    assert stats.enough(steady, 0.01)
    assert not stats.enough(steady[:5], 0.01)
    assert not stats.enough([1.0, 1.5, 0.5, 1.0, 1.2, 0.8], 0.01)
    assert not stats.enough([0.0] * 6, 0.01)  # nothing is known relative to zero
