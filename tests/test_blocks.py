"""Division of a range into parts of equal density."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfar.model.blocks import equal_blocks


def test_events_of_one_density_are_one_block() -> None:
    rng = np.random.default_rng(1)
    divided = 0
    for _ in range(200):
        events = rng.poisson(20, 64).astype(float)
        divided += len(equal_blocks(events, np.ones(64), 16)) > 1
    assert divided <= 10


def test_a_dense_part_is_found_where_it_is() -> None:
    rng = np.random.default_rng(2)
    density = np.ones(128)
    density[40:56] = 30
    events = rng.poisson(density).astype(float)
    blocks = equal_blocks(events, np.ones(128), 16)
    assert any(abs(begin - 40) <= 1 and abs(end - 56) <= 1 for begin, end in blocks)


def test_density_counts_by_extent() -> None:
    extents = np.array([1.0] * 32 + [10.0] * 32)
    assert len(equal_blocks(extents * 20, extents, 16)) == 1


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=100), st.integers(1, 8), st.integers(0, 9)
)
def test_blocks_cover_all_bins_once(events: list[int], most: int, seed: int) -> None:
    extents = np.random.default_rng(seed).uniform(0.1, 10, len(events))
    blocks = equal_blocks(np.array(events, float), extents, most)
    assert len(blocks) <= most
    assert [begin for begin, _ in blocks] == [0, *(end for _, end in blocks[:-1])]
    assert blocks[-1][1] == len(events)


def value(events: list[float], extents: list[float], cuts: tuple[int, ...]) -> float:
    """The sum that the best division maximizes."""
    ends = [0, *cuts, len(events)]
    penalty = 4 - np.log(73.53 * 0.01 * max(sum(events), 1) ** -0.478)
    total = -penalty * (len(ends) - 1)
    for begin, end in pairwise(ends):
        inside = sum(events[begin:end])
        total += inside * np.log(inside / sum(extents[begin:end])) if inside else 0.0
    return float(total)


def test_the_division_is_the_best_of_all() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        events = rng.poisson(rng.choice([1, 30], 8)).astype(float)
        extents = rng.uniform(0.5, 2, 8)
        known = (list(events), list(extents))
        all_cuts = (cuts for count in range(8) for cuts in combinations(range(1, 8), count))
        best = max(value(*known, cuts) for cuts in all_cuts)
        found = equal_blocks(events, extents, 8)
        assert value(*known, tuple(end for _, end in found[:-1])) == pytest.approx(best)
