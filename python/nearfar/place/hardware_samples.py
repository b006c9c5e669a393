"""Memory accesses that hardware sampled (Intel PEBS, AMD IBS) as stalls.

A sample stands for ``period`` accesses with this latency, and its data source says whether the data
came from memory: nothing is estimated from addresses. Only accesses that memory served are counted
as stalls, because the others do not change in far memory. The latencies of overlapping accesses are
added. If the sum exceeds the CPU time, all are scaled down to it.

Not known: stores, whose latency is not sampled, and hits in fill buffers, whose source is not.
Units: nanoseconds. Not validated on hardware.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.model.reuse import spread_of
from nearfar.place.held_data import held_data
from nearfar.place.sample_records import MEMORY, ordered_samples
from nearfar.place.samples import ProgramSamples, Stalls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import Sampler
    from nearfar.place.sample_records import Samples
    from nearfar.place.sampled_sizes import PageFaults

#: Sources of data that are memory, by their names in PERF_MEMORY_LEVELS.
_MEMORY_LEVELS = ("local_ram", "remote_ram", "cxl", "pmem")


def has_hardware_samples(sampler: Sampler) -> bool:
    """Whether hardware sampled memory accesses."""
    return bool((ordered_samples(sampler)["kind"] == MEMORY).any())


def read_hardware_samples(
    sampler: Sampler,
    user_s: float,
    frequency_hz: float,
    faults: PageFaults,
    *,
    whole_sites: bool = False,
) -> ProgramSamples:
    """Read the memory accesses that a sampler has seen. ``user_s``: CPU time of the programs;
    ``frequency_hz``: of the cycles of latencies; ``whole_sites``: see ``held_data``."""
    samples = ordered_samples(sampler)
    is_access = samples["kind"] == MEMORY
    accesses = samples[is_access]
    held = held_data(sampler, samples, faults, whole_sites=whole_sites)
    cycles = accesses["latency_cycles"].astype(float) * accesses["period"]
    times_ns = cycles * sampler.every() * 1e9 / frequency_hz
    if times_ns.sum() > user_s * 1e9:
        times_ns *= user_s * 1e9 / times_ns.sum()
    missed = _came_from_memory(accesses)
    known = missed & (accesses["address"] != 0)
    return ProgramSamples(
        held.sites,
        held.sizes,
        held.touched,
        _stalls(accesses[known], times_ns[known], held.numbers[is_access][known]),
        {},
        user_s * 1e9,
        len(accesses),
        0.0,
        1 - float(known.sum()) / max(int(missed.sum()), 1) if missed.any() else 0.0,
    )


def _came_from_memory(accesses: Samples) -> NDArray[np.bool_]:
    import numpy as np

    from nearfar._native import PERF_MEMORY_LEVELS

    return np.isin(accesses["level"], [PERF_MEMORY_LEVELS.index(name) for name in _MEMORY_LEVELS])


def _stalls(
    accesses: Samples, times_ns: NDArray[np.float64], sites: NDArray[np.int64]
) -> tuple[Stalls, ...]:
    """One for each place in the code and site."""
    import numpy as np

    groups = accesses["code"].astype(np.int64) << 32 | sites
    return tuple(
        _stalls_of(accesses[groups == group], times_ns[groups == group], int(group & 0xFFFFFFFF))
        for group in np.unique(groups)
    )


def _stalls_of(part: Samples, times_ns: NDArray[np.float64], site: int) -> Stalls:
    import numpy as np

    times, threads = part["time_ns"].astype(np.float64), part["thread"].astype(np.int64)
    return Stalls(
        site=site,
        samples=len(part),
        stall_ns=float(times_ns.sum()),
        others_ns=0.0,
        spans=spread_of(part["address"].copy(), times, threads).bytes,
        streamed_bytes=None,
        loop=0,
        follows_pointer=False,
        is_store=False,
        from_memory=True,
    )
