"""From sampled addresses to misses and streams, on accesses whose properties are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearfar.model.reuse import locality, miss_fractions, spans_of, spread_of, working_set
from nearfar.model.streams import Stream, stream_of, time_of

MIB = 1 << 20
PERIOD_NS = 500_000.0


def random_addresses(count: int, bytes_: int, seed: int = 1) -> NDArray[np.uint64]:
    lines = np.random.default_rng(seed).integers(0, bytes_ // 64, count)
    return (0x7F00_0000_0000 + lines * 64).astype(np.uint64)


def times(count: int) -> NDArray[np.float64]:
    return np.arange(count, dtype=np.float64) * PERIOD_NS


def one_thread(count: int) -> NDArray[np.int64]:
    return np.ones(count, np.int64)


@pytest.mark.parametrize("mib", [1, 16, 256])
def test_the_footprint_of_random_accesses_is_their_region(mib: int) -> None:
    count = 2000
    spread = spread_of(random_addresses(count, mib * MIB), times(count), one_thread(count))
    assert spread.total == pytest.approx(mib * MIB, rel=0.3)


def test_a_hot_part_of_a_region_stands_for_few_bytes() -> None:
    hot, cold = random_addresses(1000, MIB), random_addresses(1000, 256 * MIB, seed=2)
    spans = spans_of(np.concatenate([hot, cold]))
    assert spans[:1000].sum() < 4 * MIB
    assert spans[1000:].sum() > 200 * MIB


def test_work_on_one_part_after_another_has_locality() -> None:
    parts = [random_addresses(64, MIB, seed) + np.uint64(seed * MIB) for seed in range(32)]
    addresses = np.concatenate(parts)
    count = len(addresses)
    assert locality(addresses, times(count), one_thread(count)) > 8
    scattered = random_addresses(count, 32 * MIB)
    assert locality(scattered, times(count), one_thread(count)) < 2


def test_few_samples_have_no_working_set() -> None:
    few = random_addresses(5, 256 * MIB)
    assert working_set(few, few[::-1]) is None
    assert spread_of(few, times(5), one_thread(5)).total > 0
    none = few[:0]
    assert spread_of(none, times(0), one_thread(0)).total == 0


def _fractions(sizes: Sequence[int], rates: Sequence[float], capacity: int) -> list[float]:
    spans = [np.full(500, size / 500) for size in sizes]
    per_sample = [np.full(500, rate / 500) for rate in rates]
    return [float(m.mean()) for m in miss_fractions(spans, per_sample, capacity)]


def test_what_fits_hits_and_what_is_much_larger_misses() -> None:
    assert _fractions([8 * MIB], [1.0], 16 * MIB) == [0.0]
    assert _fractions([1024 * MIB], [1.0], 16 * MIB)[0] > 0.97


def test_random_accesses_to_twice_a_cache_miss_half_of_the_time() -> None:
    """Any line is in the cache with probability capacity over size, all lines being alike."""
    assert _fractions([32 * MIB], [1.0], 16 * MIB)[0] == pytest.approx(0.5, abs=0.01)


def test_a_hot_region_keeps_its_place_in_a_shared_cache() -> None:
    hot, cold = _fractions([4 * MIB, 256 * MIB], [1.0, 1.0], 16 * MIB)
    assert hot < 0.1 < 0.9 < cold


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 512), st.floats(0.01, 100)), min_size=1, max_size=5),
    st.integers(1, 64),
)
def test_the_lines_that_hit_fill_the_cache(sites: list[tuple[int, float]], mib: int) -> None:
    sizes, rates = [size * MIB for size, _ in sites], [rate for _, rate in sites]
    found = _fractions(sizes, rates, mib * MIB)
    assert all(0 <= fraction <= 1 for fraction in found)
    held = sum(size * (1 - fraction) for size, fraction in zip(sizes, found, strict=True))
    assert held == pytest.approx(min(mib * MIB, sum(sizes)), rel=0.01)


def stream(addresses: NDArray[np.uint64], at_ns: NDArray[np.float64] | None = None) -> Stream:
    count = len(addresses)
    at_ns = times(count) if at_ns is None else at_ns
    return stream_of(addresses, at_ns, one_thread(count), PERIOD_NS)


def walk(count: int, speed: float, begin: int = 0x7F00_0000_0000) -> NDArray[np.uint64]:
    moved = (np.arange(count) * speed * PERIOD_NS).astype(np.int64)
    return (begin + moved % (64 * MIB)).astype(np.uint64)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_stream_passes_what_its_address_moves(direction: int) -> None:
    """At 4.9 bytes a ns, in rounds through 64 MiB; between rounds the address jumps back."""
    found = stream(walk(1000, 4.9)[::direction])
    assert found.bytes == pytest.approx(1000 * 4.9 * PERIOD_NS, rel=0.06)
    assert (found.ends - found.begins).sum() == pytest.approx(1000 * PERIOD_NS, rel=0.06)


def test_random_accesses_and_lone_samples_are_not_a_stream() -> None:
    addresses = random_addresses(500, 64 * MIB)
    assert stream(addresses).bytes == 0
    assert stream(addresses[:2]).bytes == 0
    assert stream(random_addresses(500, 1 << 40)).bytes == 0
    assert stream(walk(500, 4.9), times(500) * 1000).bytes == 0


def test_a_stream_before_a_long_loop_next_to_it_has_its_own_time() -> None:
    """A loop copies for 50 of 1,000 periods, from two places in the code; later another does."""
    all_times = times(1000)
    copies = [
        stream(walk(13, 4 * 4.0, 0x7F00_0000_0000 + k * MIB), all_times[k:50:4]) for k in (0, 1)
    ]
    assert time_of(copies, all_times, one_thread(1000)) == pytest.approx(50, abs=2)
    later = stream(walk(25, 2 * 4.0), all_times[500:550:2])
    assert time_of([*copies, later], all_times, one_thread(1000)) == pytest.approx(100, abs=4)
    assert time_of(copies, all_times, 2 * one_thread(1000)) == 0
