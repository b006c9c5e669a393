"""Time in the kernel that first touches took in a sampled run.

The clock is limited to user code. Where consecutive samples of a thread are further apart than a
period, the thread was in the kernel, or waited. Gaps that contain a page fault are counted as time
of faults, limited to the system time of the run. A host's figure does not show this time: a
hypervisor that takes free memory back makes the first touch of a large page up to 17 times slower
(0.1 to 1.6 ms measured in a virtual machine), and each run gets other memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nearfar.place.memory_costs import Memory
from nearfar.place.sample_records import CLOCK, FAULT

if TYPE_CHECKING:
    from nearfar.place.program_data import Touched
    from nearfar.place.sample_records import Samples


def first_touches_ns(
    samples: Samples, period_ns: int, system_s: float, share: float = 1.0
) -> float:
    """CPU time of page faults. ``samples``: all of the run, by thread and time, with all faults;
    ``share``: fraction of the time in which the clock ran."""
    import numpy as np

    is_clock = samples["kind"] == CLOCK
    clock, faults = samples[is_clock], np.cumsum(samples["kind"] == FAULT)[is_clock]
    missing = np.diff(clock["time_ns"].astype(np.int64)) - period_ns
    at_faults = (np.diff(clock["thread"]) == 0) & (np.diff(faults) > 0) & (missing > 0)
    return min(float(missing[at_faults].sum()) / share, system_s * 1e9)


def with_observed_touches(near: Memory, touched: Touched, touches_ns: float) -> Memory:
    """Near memory whose first touches of large pages took ``touches_ns`` in all. Value: as observed
    in this run; range: the host's, extended to this value."""
    pages = sum(touched.large)
    if not near.large_pages or not touches_ns or not pages:
        return near
    each = touches_ns / pages
    return replace(
        near,
        touch=each,
        touch_low=min(near.touch_low, each),
        touch_high=max(near.touch_high, each),
    )
