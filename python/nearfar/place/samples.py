"""Samples of a program in the form that advice requires: stalls by place in the code and site."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from nearfar.model.reuse import spread_of
from nearfar.model.streams import speed_of
from nearfar.place.program_data import PAGE_BYTES, PARTS, ProgramData, Touched
from nearfar.place.sites import Frame, Site
from nearfar.records.choices import SiteKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import SampledCode, SampledData, Sampler

    Floats = NDArray[np.float64]
    Samples = NDArray[np.void]

#: A sample, as native/sample/samples.hpp has it.
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
#: Bytes of code around a place that count as the same loop.
_LOOP_BYTES = 128
_SMALL_IN_LARGE = 512
#: Mean size of blocks from which on they are mapped and unmapped (mallopt(3), M_MMAP_THRESHOLD).
_RETURNED_BYTES = 128 << 10


@dataclass(frozen=True)
class Stalls:
    """What one place in the code waits for on one site. Times in ns, over the whole run.

    ``stall_ns``: time of its samples, less that of instructions that do not wait. ``others_ns``:
    time of instructions around it that do not wait. ``spans``: bytes that each sample stands for.
    ``speed``: of a stream, in bytes per ns, else 0; ``loop``: the loop that it runs in;
    ``from_memory``: known to have missed all caches, otherwise that is estimated.
    """

    site: int
    samples: int
    stall_ns: float
    others_ns: float
    spans: Floats
    speed: float
    loop: int
    follows_pointer: bool
    is_store: bool
    from_memory: bool = False


@dataclass(frozen=True)
class ProgramSamples(ProgramData):
    """A sampled run. ``loops_ns``: user CPU time of each loop that streams; ``user_ns``: that of
    the whole run; ``unknown_share``: fraction of the samples at accesses whose data is unknown."""

    stalls: tuple[Stalls, ...]
    loops_ns: dict[int, float]
    user_ns: float
    samples: int
    period_ns: float
    unknown_share: float


@dataclass(frozen=True)
class PageFaults:
    """All page faults of the run, of which some were sampled; ``are_large``: the heap was on large
    pages."""

    count: int
    are_large: bool = False


@dataclass(frozen=True)
class _Run:
    """All clock samples, the time that each stands for, and the tables of their numbers."""

    clock: Samples
    each_ns: float
    code: list[SampledCode]
    sites: NDArray[np.int64]  # by number of the data place
    period_ns: float


@dataclass(frozen=True)
class HeldData:
    """The sites of a run with live bytes and first touches. ``numbers``: the site of each place of
    data."""

    sites: tuple[Site, ...]
    numbers: NDArray[np.int64]
    sizes: Floats
    touched: Touched


def ordered_samples(sampler: Sampler) -> Samples:
    """All samples by thread, those of each thread in order of time."""
    import numpy as np

    samples = np.frombuffer(sampler.samples(), np.dtype(SAMPLE_FIELDS))
    return samples[np.lexsort((samples["time_ns"], samples["thread"]))]


def held_data(sampler: Sampler, samples: Samples, faults: PageFaults) -> HeldData:
    """Describe the sites of samples."""
    data = sampler.data()
    sites, numbers = _sites(data, sampler.files())
    sizes = _sizes(sites, data, numbers, samples)
    touched = _touched(sites, samples[samples["kind"] == FAULT], numbers, faults)
    return HeldData(tuple(sites), numbers, sizes, touched)


def read_samples(
    sampler: Sampler, user_s: float, period_ns: float, faults: PageFaults
) -> ProgramSamples:
    """Read what a sampler has seen. ``user_s``: user CPU time of the sampled programs."""
    import numpy as np

    samples = ordered_samples(sampler)
    clock = samples[samples["kind"] == CLOCK]
    held = held_data(sampler, samples, faults)
    run = _Run(clock, user_s * 1e9 / max(len(clock), 1), sampler.code(), held.numbers, period_ns)
    stalls, loops_ns = _stalls(run)
    with_access = np.array([place["bytes"] > 0 for place in run.code] or [False])
    unknown = with_access[clock["code"]] & (clock["address"] == 0) if len(clock) else np.zeros(0)
    return ProgramSamples(
        tuple(_with_life(site, held.sizes[site.number]) for site in held.sites),
        held.sizes,
        held.touched,
        tuple(stalls),
        loops_ns,
        user_s * 1e9,
        len(clock),
        period_ns,
        float(unknown.sum()) / max(len(clock), 1),
    )


def _sites(
    data: list[SampledData], files: list[tuple[bytes, str]]
) -> tuple[list[Site], NDArray[np.int64]]:
    """The sites, each once for all processes, and the site of each place of data."""
    import numpy as np

    known: dict[tuple[str, tuple[Frame, ...]], int] = {}
    made: list[Site] = []
    numbers = np.zeros(len(data), np.int64)
    for i, place in enumerate(data):
        frames = tuple(
            Frame(os.fsdecode(files[file][0]), files[file][1], offset)
            for file, offset in place["frames"]
        )
        number = known.setdefault((place["kind"], frames), len(made))
        numbers[i] = number
        if number == len(made):
            kind = cast("SiteKind", place["kind"])
            made.append(Site(number, kind, frames, 0, 0, 0, 0, 0, 0.0))
        made[number] = _with(made[number], place)
    return made, numbers


def _with(site: Site, place: SampledData) -> Site:
    """The site with the allocations of one more process."""
    return Site(
        site.number,
        site.kind,
        site.frames,
        site.allocations + place["allocations"],
        site.allocated_bytes + place["allocated_bytes"],
        site.peak_bytes + place["peak_bytes"],
        0,
        0,
        1.0,
    )


def _stalls(run: _Run) -> tuple[list[Stalls], dict[int, float]]:
    """All stalls, and the times of the loops that stream."""
    import numpy as np

    if not len(run.clock):
        return [], {}
    codes, counts = np.unique(run.clock["code"], return_counts=True)
    around = _Surroundings(run.code, dict(zip(codes.tolist(), counts.tolist(), strict=True)))
    groups = run.clock["code"].astype(np.int64) << 32 | run.sites[run.clock["data"]]
    has_data = run.clock["address"] != 0
    if not has_data.any():
        return [], {}
    order = np.argsort(groups[has_data], kind="stable")
    accesses, groups = run.clock[has_data][order], groups[has_data][order]
    parts = np.split(accesses, np.flatnonzero(np.diff(groups)) + 1)
    made = [_stalls_of(run, part, around) for part in parts]
    loops_ns = {
        each.loop: around.loop_samples(each.loop) * run.each_ns for each in made if each.speed
    }
    return made, loops_ns


def _stalls_of(run: _Run, part: Samples, around: _Surroundings) -> Stalls:
    import numpy as np

    code = int(part["code"][0])
    place = run.code[code]
    addresses, times = part["address"].copy(), part["time_ns"].astype(np.float64)
    threads = part["thread"].astype(np.int64)
    share = around.stalling_share(code)
    return Stalls(
        site=int(run.sites[part["data"][0]]),
        samples=len(part),
        stall_ns=len(part) * share * run.each_ns,
        others_ns=around.others(code) * len(part) / around.counts[code] * run.each_ns,
        spans=spread_of(addresses, times, threads).bytes,
        speed=speed_of(addresses, times, threads, run.period_ns),
        loop=around.loop_of(code),
        follows_pointer=place["follows_pointer"],
        is_store=place["is_store"] and not place["is_load"],
    )


class _Surroundings:
    """Samples of the code around a place: what does not wait, and the loop."""

    def __init__(self, code: list[SampledCode], counts: dict[int, int]) -> None:
        import numpy as np

        self.code, self.counts = code, counts
        self._order = sorted(counts, key=lambda k: (code[k]["file"], code[k]["offset"]))
        self._places = {number: i for i, number in enumerate(self._order)}
        ends = [
            i == 0 or not self._near(self._order[i - 1], number)
            for i, number in enumerate(self._order)
        ]
        self._loops = np.cumsum(ends) if ends else np.zeros(0, np.int64)

    def _near(self, one: int, other: int) -> bool:
        first, second = self.code[one], self.code[other]
        return (
            first["file"] == second["file"]
            and abs(second["offset"] - first["offset"]) <= _LOOP_BYTES
        )

    def _around(self, code: int) -> list[int]:
        """Sampled places near one, itself excluded."""
        at, found = self._places[code], []
        for step in (-1, 1):
            i = at + step
            while 0 <= i < len(self._order) and self._near(code, self._order[i]):
                found.append(self._order[i])
                i += step
        return found

    def stalling_share(self, code: int) -> float:
        """The fraction of a place's samples that instructions around it without an access do not
        explain: they retire as often."""
        if self.code[code]["is_string"]:
            return 1.0
        free = [self.counts[k] for k in self._around(code) if not self.code[k]["bytes"]]
        if not free:
            return 1.0
        return max(1 - sum(free) / len(free) / self.counts[code], 0.0)

    def others(self, code: int) -> int:
        """Samples around a place at instructions without an access."""
        return sum(self.counts[k] for k in self._around(code) if not self.code[k]["bytes"])

    def loop_of(self, code: int) -> int:
        """A number for the code around a place, without gaps."""
        return int(self._loops[self._places[code]])

    def loop_samples(self, loop: int) -> int:
        """Samples of a loop."""
        return sum(self.counts[k] for k in self._order if self._loops[self._places[k]] == loop)


def _sizes(
    sites: list[Site], data: list[SampledData], numbers: NDArray[np.int64], samples: Samples
) -> Floats:
    """Live bytes of heap sites over the run."""
    import numpy as np

    sizes = np.zeros((len(sites), PARTS))
    if not len(samples):
        return sizes
    begin, end = int(samples["time_ns"].min()), int(samples["time_ns"].max())
    width = max(end - begin, 1) / PARTS
    for number, place in zip(numbers, data, strict=True):
        last = 0.0
        filled = np.zeros(PARTS)
        for at_ns, live in place["held"]:
            part = min(max(int((at_ns - begin) / width), 0), PARTS - 1)
            filled[part:] = last = float(live)
        if place["peak_bytes"] > filled.max():
            filled[int(filled.argmax()) if last else 0] = place["peak_bytes"]
        sizes[number] += filled
    return sizes


def _with_life(site: Site, sizes: Floats) -> Site:
    """The site with the mean lifetime of its bytes, from their sizes over the run."""
    if site.kind != "heap" or not site.allocated_bytes:
        return site
    return replace(site, life_share=min(float(sizes.mean()) / site.allocated_bytes, 1.0))


def _most_touched_bytes(site: Site) -> int:
    """An upper bound of what a site touches first: allocators return large blocks to the kernel,
    so that each is touched anew, and use the memory of small blocks again."""
    if site.allocated_bytes >= _RETURNED_BYTES * site.allocations:
        return site.allocated_bytes
    return site.peak_bytes


def _touched(
    sites: list[Site], samples: Samples, numbers: NDArray[np.int64], faults: PageFaults
) -> Touched:
    """First touches, from samples of page faults. If the heap's pages are large, a fault brings in
    512 small ones, at most as many as the site's blocks have."""
    import numpy as np

    pages = np.zeros(len(sites))
    if len(samples):
        np.add.at(pages, numbers[samples["data"]], samples["period"].astype(np.float64))
        pages *= max(faults.count, 1) / pages.sum()
    if faults.are_large:
        for site in sites:
            if site.kind == "heap":
                most = max(_most_touched_bytes(site) / PAGE_BYTES, pages[site.number])
                pages[site.number] = min(pages[site.number] * _SMALL_IN_LARGE, most)
    small = tuple(round(count) for count in pages)
    large = tuple(-(-count // _SMALL_IN_LARGE) for count in small)
    fixed = sum(count for site, count in zip(sites, small, strict=True) if site.kind != "heap")
    return Touched(small, large, fixed)
