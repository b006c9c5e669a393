"""Checks of internal consistency, each with the published slip that it was written after."""

from __future__ import annotations

import pytest

from nearfar.model import consistency
from published import COLS, ROWS

NEAR, FAR = 61042.84e6, 3038.16e6


def test_far_rows_are_half_of_the_formula() -> None:
    found = consistency.far_rows_against_formula(750, ROWS, NEAR, FAR)
    assert found is not None
    assert "750 far rows are half of the 1499" in found
    assert found.startswith("internal consistency")


@pytest.mark.parametrize("far_rows", [1499, 1100, 500])
def test_far_rows_that_are_no_slip(far_rows: int) -> None:
    assert consistency.far_rows_against_formula(far_rows, ROWS, NEAR, FAR) is None


def test_a_large_case_of_one_and_a_half_times_size_over_speed() -> None:
    small, large = 16 * ROWS * COLS, 16 * 100_000 * 100_000
    slip = [(1.0 * small / NEAR, small, NEAR), (1.5 * large / NEAR, large, NEAR)]
    found = consistency.times_over_size(slip)
    assert found is not None
    assert "1.00, 1.50 times size over speed" in found
    right = [slip[0], (large / NEAR, large, NEAR)]
    assert consistency.times_over_size(right) is None


def test_a_transfer_counted_at_eight_bytes_against_speeds_counted_at_sixteen() -> None:
    elements, speed = 16_000_000 * 5_000, 41.47e9
    found = consistency.transfer_volume(8 * elements / speed, elements, speed)
    assert found is not None
    assert "moves 8.0 bytes an element" in found
    assert consistency.transfer_volume(31.22, elements, speed) is None
