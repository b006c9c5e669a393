"""What keeps the pictures readable: ticks, and names that do not overlap."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar.report.drawing import decade_ticks, size_ticks, spread_out
from nearfar.units import GIB, KIB, MIB


@given(st.lists(st.floats(0, 400), max_size=8), st.floats(1, 30))
def test_spread_positions_keep_their_gap_and_their_order(
    positions: list[float], gap: float
) -> None:
    moved = spread_out(positions, gap)
    ranked = sorted(range(len(positions)), key=lambda i: (positions[i], moved[i]))
    for left, right in pairwise(ranked):
        assert moved[right] - moved[left] >= gap * 0.999


@given(st.lists(st.integers(0, 8), min_size=1, max_size=8, unique=True))
def test_positions_far_enough_apart_stay(places: list[int]) -> None:
    positions = [place * 20.0 for place in places]
    assert spread_out(positions, 15) == pytest.approx(positions)


def test_size_ticks_are_even_powers_of_two() -> None:
    assert size_ticks(4 * KIB, GIB, 10) == [4 * KIB * 4**i for i in range(10)]
    assert size_ticks(4 * KIB, 4 * MIB, 3) == [4 * KIB, 64 * KIB, MIB]
    assert size_ticks(5 * KIB, 7 * KIB, 3) == []


def test_decade_ticks_lie_between() -> None:
    assert decade_ticks(1.5, 110) == [2, 5, 10, 20, 50, 100]
