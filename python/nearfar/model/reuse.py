"""Which sampled accesses missed a cache, from the addresses of the samples alone.

Samples are rare (thousands a second), so no line is seen twice within its time in a cache. But the
samples of a place in the code are a random draw of what it accesses, and a draw shows how densely
it is accessed: k neighbors within a span of bytes, of n samples, mean a density of k / (n span)
(k-nearest-neighbor density estimate: Loftsgaarden and Quesenberry, Annals of Mathematical
Statistics 36(3), 1965). Density times the rate of accesses is the rate a of accesses to a line, and
a line misses a cache with characteristic time T with probability exp(-a T), where T follows from
the capacity C (Che, Tung and Wang, IEEE JSAC 20(7), 2002; Fagin, 1977):

    sum over lines of (1 - exp(-a T)) = C

Locality in time, such as that of a sort that works on one part after the other, is not in the
density over a longer part of a run. It shows in pairs of samples close in time: two accesses to a
working set of W bytes lie in the same block of g bytes with probability g / W. The density is
raised by the ratio of both working sets.

Units: bytes, nanoseconds. Pure functions of arrays; thread-safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Addresses = NDArray[np.uint64]

#: Neighbors of the density estimate: its relative error is about 1 / sqrt(k).
NEIGHBORS = 8
#: Samples of one part of a run; the density is that of the part.
PART_SAMPLES = 512
#: Pairs of samples at most this far apart show locality in time: the time in which a program
#: replaces the content of a last cache (16 MiB at 1 GB/s).
NEAR_NS = 16e6
_NEAR_SAMPLES = 16
#: Pairs in the same block that an estimate needs: its relative error is about 1 / sqrt(pairs).
_MIN_PAIRS = 12
#: Blocks of the pairs, as powers of two of bytes.
_BLOCK_SHIFTS = (6, 9, 12, 14, 16, 18, 20, 22, 24, 26, 28)
_PAIRS = 20_000
_SEED = 1
_HALVINGS = 40


@dataclass(frozen=True)
class Spread:
    """Accesses of one place in the code to one place of data, by sample: ``bytes`` that each sample
    stands for. ``total``: sum of the bytes, the footprint."""

    bytes: Floats

    @property
    def total(self) -> float:
        """The footprint in bytes."""
        return float(self.bytes.sum())


def spread_of(addresses: Addresses, times_ns: Floats, threads: NDArray[np.int64]) -> Spread:
    """Spread of accesses in memory, in order of time."""
    import numpy as np

    count = len(addresses)
    parts = max(count // PART_SAMPLES, 1)
    each = [spans_of(addresses[part]) / parts for part in np.array_split(np.arange(count), parts)]
    spans = np.concatenate(each) if each else np.zeros(0)
    return Spread(spans / locality(addresses, times_ns, threads))


def spans_of(addresses: Addresses) -> Floats:
    """The bytes that each of some accesses stands for: the inverse of their density."""
    import numpy as np

    count = len(addresses)
    if count < 2:
        return np.full(count, float(LINE_BYTES))
    order = np.argsort(addresses, kind="stable")
    sorted_addresses = addresses[order].astype(np.float64)
    half = max(min(NEIGHBORS, count - 1) // 2, 1)
    low = np.maximum(np.arange(count) - half, 0)
    high = np.minimum(np.arange(count) + half, count - 1)
    span = (sorted_addresses[high] - sorted_addresses[low]) / (high - low)
    spans = np.empty(count)
    spans[order] = np.maximum(span, LINE_BYTES / count)
    return spans


def locality(addresses: Addresses, times_ns: Floats, threads: NDArray[np.int64]) -> float:
    """The working set of pairs at any distance in time over that of pairs close in time, at least
    1."""
    close = working_set(*_close_pairs(addresses, times_ns, threads))
    whole = working_set(*_random_pairs(addresses))
    if close is None or whole is None:
        return 1.0
    return max(whole / close, 1.0)


def working_set(first: Addresses, second: Addresses) -> float | None:
    """The bytes over which two accesses are spread evenly, from independent pairs; None if too few
    pairs meet in any block."""
    for shift in _BLOCK_SHIFTS:
        met = int((first >> shift == second >> shift).sum())
        if met >= _MIN_PAIRS:
            return float(1 << shift) * len(first) / met
    return None


def _close_pairs(
    addresses: Addresses, times_ns: Floats, threads: NDArray[np.int64]
) -> tuple[Addresses, Addresses]:
    import numpy as np

    first, second = [], []
    for lag in range(1, min(_NEAR_SAMPLES, len(addresses) - 1) + 1):
        near = (times_ns[lag:] - times_ns[:-lag] <= NEAR_NS) & (threads[lag:] == threads[:-lag])
        first.append(addresses[:-lag][near])
        second.append(addresses[lag:][near])
    if not first:
        return addresses[:0], addresses[:0]
    return np.concatenate(first), np.concatenate(second)


def _random_pairs(addresses: Addresses) -> tuple[Addresses, Addresses]:
    import numpy as np

    if len(addresses) < 2:
        return addresses[:0], addresses[:0]
    draw = np.random.default_rng(_SEED).integers(0, len(addresses), (2, _PAIRS))
    apart = draw[0] != draw[1]
    return addresses[draw[0][apart]], addresses[draw[1][apart]]


def miss_fractions(
    spans: Sequence[Floats], rates: Sequence[Floats], capacity: float, unit: float = LINE_BYTES
) -> list[Floats]:
    """The probability that each access misses a cache of ``capacity`` bytes with lines of ``unit``
    bytes.

    ``spans``: bytes that each sample stands for, ``rates``: its accesses a nanosecond; arrays of
    any number of places that share the cache.
    """
    import numpy as np

    if not spans:
        return []
    all_spans, all_rates = np.concatenate(spans), np.concatenate(rates)
    lines = np.maximum(all_spans / unit, 1e-9)
    a = all_rates / lines
    if float(lines.sum()) * unit <= capacity:
        return [np.zeros(len(span)) for span in spans]
    time = _characteristic_time(lines * unit, a, capacity)
    missing = np.exp(-a * time)
    ends = np.cumsum([len(span) for span in spans])[:-1]
    return list(np.split(missing, ends))


def _characteristic_time(line_bytes: Floats, a: Floats, capacity: float) -> float:
    """The time that a line stays in the cache, by bisection on its logarithm."""
    import numpy as np

    positive = a[a > 0]
    if not len(positive):
        return 0.0
    low, high = float(np.log(1e-9 / positive.max())), float(np.log(100.0 / positive.min()))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        held = float((line_bytes * -np.expm1(-a * np.exp(middle))).sum())
        low, high = (middle, high) if held < capacity else (low, middle)
    return float(np.exp(low))
