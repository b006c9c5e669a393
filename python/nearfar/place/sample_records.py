"""Samples as the core returns them (native/sample/samples.hpp)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import Sampler

    Samples = NDArray[np.void]

SAMPLE_FIELDS = [
    ("time_ns", "u8"),
    ("address", "u8"),
    ("code", "u4"),
    ("data", "u4"),
    ("process", "i4"),
    ("thread", "i4"),
    ("period", "u4"),
    ("kind", "u1"),
    ("level", "u1"),
    ("latency_cycles", "u2"),
]
CLOCK, FAULT, MEMORY = 0, 1, 2


def ordered_samples(sampler: Sampler) -> Samples:
    """All samples by thread, those of each thread in order of time.

    If the clock ran in bursts, each burst of a thread has a number of its own as its ``thread``:
    between two bursts, consecutive samples say nothing.
    """
    import numpy as np

    samples = np.frombuffer(sampler.samples(), np.dtype(SAMPLE_FIELDS))
    samples = samples[np.lexsort((samples["time_ns"], samples["thread"]))]
    if bursts := sampler.bursts():
        samples = samples.copy()
        samples["thread"] = _courses(samples, bursts)
    return samples


def _courses(samples: Samples, begins_ns: list[int]) -> NDArray[np.int64]:
    """Numbers of the bursts of each thread, for samples by thread and time."""
    import numpy as np

    bursts = np.searchsorted(np.array(begins_ns, np.uint64), samples["time_ns"], side="right")
    changes = (np.diff(bursts) != 0) | (np.diff(samples["thread"]) != 0)
    return np.cumsum(np.append(False, changes))[: len(samples)]
