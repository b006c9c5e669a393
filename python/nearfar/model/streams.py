"""Streams among sampled accesses: how fast an address moves is measured, not modeled.

At two samples, an instruction that walks through an array accesses addresses whose distance over
the time between them is its speed in bytes per nanosecond. Random accesses have no speed: their
distances have any sign and size. The distances of a steady speed add up to the bytes that are
streamed, whatever prefetchers did, and the times between them to the time of the loop.

Units: bytes, nanoseconds. Pure functions; thread-safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Accesses are a stream if at least this fraction of speeds has the direction of the median and is
#: within a factor of two of it. Random accesses reach about 0.25.
STEADY = 0.5
_MIN_DISTANCES = 4
#: Samples between which the speed is measured are at most this many sampling periods apart: a
#: stream that is always prefetched is seldom seen.
_MAX_PERIODS = 200
#: Bytes per nanosecond beyond which distances are not those of a stream: no core reads so fast.
_FASTEST = 64.0


@dataclass(frozen=True)
class Stream:
    """Accesses that walk through memory. ``bytes``: that they pass, 0 if they are not a stream;
    ``begins``, ``ends``: the intervals of time in which they do, each of a thread."""

    bytes: float
    begins: NDArray[np.float64]
    ends: NDArray[np.float64]
    threads: NDArray[np.int64]


def stream_of(
    addresses: NDArray[np.uint64],
    times_ns: NDArray[np.float64],
    threads: NDArray[np.int64],
    period_ns: float,
) -> Stream:
    """The stream of accesses of one place in the code, by thread and time, in either direction.

    Between two samples the address moves at the stream's speed. Beyond the first and the last
    sample of an interval the stream goes on, on average for half the time between two samples.
    """
    import numpy as np

    elapsed = np.diff(times_ns)
    near = (elapsed > 0) & (elapsed <= _MAX_PERIODS * period_ns) & (np.diff(threads) == 0)
    speeds = np.diff(addresses.astype(np.int64)) / np.where(near, elapsed, 1.0)
    steady = near & _steady(speeds, near)
    if not steady.any():
        nothing = np.zeros(0)
        return Stream(0.0, nothing, nothing, nothing.astype(np.int64))
    starts = np.flatnonzero(steady & ~np.append(False, steady[:-1]))
    stops = np.flatnonzero(steady & ~np.append(steady[1:], False)) + 1
    margin = float(elapsed[steady].mean()) / 2
    moved = float((np.abs(speeds) * elapsed)[steady].sum())
    return Stream(
        moved * (1 + len(starts) / int(steady.sum())),
        times_ns[starts] - margin,
        times_ns[stops] + margin,
        threads[starts],
    )


def _steady(speeds: NDArray[np.float64], near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which distances are those of the stream; none if too few are."""
    import numpy as np

    none = np.zeros(len(speeds), bool)
    if near.sum() < _MIN_DISTANCES:
        return none
    forward = speeds * np.sign(np.median(speeds[near]))
    ahead = forward[near & (forward > 0)]
    if not len(ahead):
        return none
    middle = float(np.median(ahead))
    steady = (forward > middle / 2) & (forward < middle * 2)
    return steady if steady[near].mean() >= STEADY and middle <= _FASTEST else none


def time_of(
    streams: Sequence[Stream], times_ns: NDArray[np.float64], threads: NDArray[np.int64]
) -> int:
    """Number of all samples in the time of streams, which may run in turns or together.
    Samples are by thread and time."""
    import numpy as np

    total = 0
    for thread in np.unique(np.concatenate([each.threads for each in streams])):
        begins = np.concatenate([each.begins[each.threads == thread] for each in streams])
        ends = np.concatenate([each.ends[each.threads == thread] for each in streams])
        of_thread = times_ns[threads == thread]
        # One more interval is open after each beginning, one fewer after each end.
        edges = np.concatenate([begins, ends])
        order = np.argsort(edges, kind="stable")
        open_after = np.cumsum(np.repeat([1, -1], len(begins))[order])
        at = np.searchsorted(edges[order], of_thread, side="right") - 1
        total += int(((at >= 0) & (open_after[np.maximum(at, 0)] > 0)).sum())
    return total
