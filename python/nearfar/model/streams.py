"""Streams among sampled accesses: how fast an address moves is measured, not modeled.

At two samples, an instruction that walks through an array accesses addresses whose distance over
the time between them is its speed in bytes per nanosecond. Random accesses have no speed: their
distances have any sign and size. A steady speed gives the number of streamed lines, whatever
prefetchers did.

Units: bytes, nanoseconds. Pure functions; thread-safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Fraction of the distances within a factor of two of the median speed, in its direction, above
#: which accesses are a stream: random accesses reach about 0.25.
STEADY = 0.5
_MIN_DISTANCES = 4
#: Samples between which the speed is measured are at most this many sampling periods apart: a
#: stream that is always prefetched is seldom seen.
_MAX_PERIODS = 200
#: Bytes per nanosecond beyond which distances are not those of a stream: no core reads so fast.
_FASTEST = 64.0


def speed_of(
    addresses: NDArray[np.uint64],
    times_ns: NDArray[np.float64],
    threads: NDArray[np.int64],
    period_ns: float,
) -> float:
    """Bytes per nanosecond of a stream, in either direction; 0 if accesses are not one."""
    import numpy as np

    elapsed = np.diff(times_ns)
    near = (elapsed > 0) & (elapsed <= _MAX_PERIODS * period_ns) & (np.diff(threads) == 0)
    moved = np.diff(addresses.astype(np.int64))
    speeds = moved[near] / elapsed[near]
    if len(speeds) < _MIN_DISTANCES:
        return 0.0
    speeds *= np.sign(np.median(speeds))
    forward = speeds[speeds > 0]
    if not len(forward):
        return 0.0
    middle = float(np.median(forward))
    steady = float(((speeds > middle / 2) & (speeds < middle * 2)).mean())
    return middle if steady >= STEADY and middle <= _FASTEST else 0.0
