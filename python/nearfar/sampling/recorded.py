"""Samples of a program that perf recorded earlier or on another machine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.place.sample_records import CLOCK, FAULT, MEMORY, ordered_samples
from nearfar.sampling.run import MIN_SAMPLES, Sampled
from nearfar.units import PAGE_BYTES

if TYPE_CHECKING:
    from nearfar._native import Sampler
    from nearfar.place.sample_records import Samples

_LARGE_PAGE_SHIFT = 21
#: Fraction of samples in unknown code above which a note is printed.
_MUCH_UNREADABLE = 0.05


def read_recorded(path: str) -> Sampled:
    """Read a perf.data file.

    Raises BadInputError if it cannot be read, or has no samples of use.
    """
    sampler = _opened(path)
    samples = ordered_samples(sampler)
    clock, accesses = (samples[samples["kind"] == kind] for kind in (CLOCK, MEMORY))
    if (count := len(accesses) or len(clock)) < MIN_SAMPLES:
        raise BadInputError(
            f"{path} has {count} samples of programs: too few",
            "record for longer, or with a shorter period",
        )
    main = clock if len(clock) else accesses
    wall_s = float(main["time_ns"].max() - main["time_ns"].min()) * 1e-9
    threads = len({int(thread) for thread in main["thread"]})
    user_s = wall_s * threads
    if len(clock):
        user_s = float(clock["period"].sum()) * 1e-9 * sampler.every()
    faults = int(samples[samples["kind"] == FAULT]["period"].sum()) * sampler.every()
    return Sampled(
        sampler,
        round(float(clock["period"].mean())) if len(clock) else 0,
        max(wall_s, 1e-9),
        max(user_s, 1e-9),
        0.0,
        _touched_bytes(samples, faults),
        faults,
        _programs(sampler, main),
        notes=_notes(sampler, clock, accesses),
        limits=_limits(clock, accesses, threads),
    )


def _opened(path: str) -> Sampler:
    from nearfar._native import NativeError, Sampler

    try:
        return Sampler.read(path)
    except NativeError as error:
        raise BadInputError(error.args[1], error.args[2]) from None


def _touched_bytes(samples: Samples, faults: int) -> int:
    """An estimate of the memory that the programs use: pages of faults, or large pages around the
    sampled addresses."""
    around = {int(address) >> _LARGE_PAGE_SHIFT for address in samples["address"] if address}
    return max(faults * PAGE_BYTES, len(around) << _LARGE_PAGE_SHIFT)


def _programs(sampler: Sampler, main: Samples) -> list[tuple[str, int]]:
    """Names with their samples, most first."""
    names = {process: name.decode(errors="replace") for process, name, _ in sampler.programs()}
    counts: Counter[str] = Counter()
    for process in main["process"].tolist():
        counts[names.get(process) or f"process {process}"] += 1
    return counts.most_common()


def _notes(sampler: Sampler, clock: Samples, accesses: Samples) -> list[str]:
    notes = ["a perf.data file has no allocation sites: run `nearfar advise -- PROGRAM` for a plan"]
    if len(accesses):
        notes.append("hardware samples: not validated on hardware")
        return notes
    code = sampler.code()
    unreadable = sum(not code[number]["is_readable"] for number in clock["code"]) / len(clock)
    if unreadable > _MUCH_UNREADABLE:
        notes.append(
            f"{unreadable:.0%} of the samples are in code that cannot be read here (files that are "
            "missing or have changed, or code of a JIT compiler): their stalls are assumed not to "
            "grow; copy the files to the same paths"
        )
    return notes


def _limits(clock: Samples, accesses: Samples, threads: int) -> list[str]:
    limits = ["CPU time is that in user mode: samples of the kernel are left out"]
    if not len(accesses):
        return limits
    limits += [
        "latencies of overlapping loads are added, to the CPU time at most; stores, and hits in "
        "fill buffers, are assumed not to wait",
        "the bandwidth of the far memory is assumed to suffice",
        "latencies in cycles are converted by the frequency of --host",
    ]
    if not len(clock):
        limits.append(
            f"the file has no samples of the CPU time: {threads} threads are assumed to have run "
            "from the first sample to the last"
        )
    return limits
