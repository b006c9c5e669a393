"""Samples that a clock took in bursts stand for the whole run."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from fixed_samplers import SamplerOfAProgram, place, samples
from nearfar._native import Sampler
from nearfar.place.sample_records import CLOCK, ordered_samples
from nearfar.place.sampled_sizes import PageFaults
from nearfar.place.samples import ProgramSamples, read_samples

MIB = 1 << 20
PERIOD_NS, BURST_NS, CYCLE_NS, RUN_NS = 500_000, 30_000_000, 90_000_000, 1_800_000_000
ARRAY, SIZE = 0x10_0000_0000, 32 * MIB


def sampler(*, in_bursts: bool) -> Sampler:
    """Two threads each read an array again and again, a byte per nanosecond."""
    times = np.arange(0, RUN_NS, PERIOD_NS, dtype=np.uint64)
    if in_bursts:
        times = times[times % CYCLE_NS < BURST_NS]
    addresses = ARRAY + times % SIZE
    seen = samples((CLOCK, addresses, 1), (CLOCK, addresses, 1))
    seen["time_ns"] = np.tile(times, 2)
    seen["thread"] = np.repeat([1, 2], len(times))
    data = [place("heap", (1, 2), peak_bytes=SIZE)]
    begins = list(range(0, RUN_NS, CYCLE_NS)) if in_bursts else []
    return cast("Sampler", SamplerOfAProgram(data, seen, [0x100], bursts=begins))


def read(*, in_bursts: bool) -> ProgramSamples:
    user_s = 2 * RUN_NS * 1e-9
    return read_samples(sampler(in_bursts=in_bursts), user_s, PERIOD_NS, PageFaults(0))


@pytest.mark.parametrize(("in_bursts", "courses"), [(False, 2), (True, 2 * 20)])
def test_each_burst_of_a_thread_is_a_course_of_its_own(*, in_bursts: bool, courses: int) -> None:
    ordered = ordered_samples(sampler(in_bursts=in_bursts))
    assert len(np.unique(ordered["thread"])) == courses


@pytest.mark.parametrize("in_bursts", [False, True])
def test_a_stream_passes_the_bytes_of_the_whole_run(*, in_bursts: bool) -> None:
    """The array begins again every 34 ms, so that nothing is known of the time between bursts."""
    (stalls,) = (found := read(in_bursts=in_bursts)).stalls
    assert stalls.streamed_bytes == pytest.approx(2 * RUN_NS, rel=0.05)
    assert list(found.loops_ns.values()) == [pytest.approx(2 * RUN_NS, rel=0.05)]


def test_samples_in_bursts_stand_for_all_of_the_time_and_count_as_they_are() -> None:
    always, bursts = (read(in_bursts=in_bursts) for in_bursts in (False, True))
    assert bursts.samples == pytest.approx(always.samples / 3, rel=0.01)
    assert bursts.stalls[0].samples == bursts.samples
    assert bursts.stalls[0].stall_ns == pytest.approx(always.stalls[0].stall_ns)
