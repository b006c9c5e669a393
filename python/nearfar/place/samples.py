"""Samples of a program in the form that advice requires: stalls by place in the code and site."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar.model.reuse import spread_of
from nearfar.model.streams import Stream, stream_of, time_of
from nearfar.place.held_data import Resident, held_data
from nearfar.place.program_data import ProgramData
from nearfar.place.sample_records import CLOCK, ordered_samples
from nearfar.place.sampled_sizes import PageFaults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import SampledCode, Sampler
    from nearfar.place.sample_records import Samples

    Floats = NDArray[np.float64]

#: Sampled instructions at most this many bytes apart are taken to be in the same loop.
_LOOP_BYTES = 128


@dataclass(frozen=True)
class Stalls:
    """The stalls of one place in the code on one site. Times in ns, over the whole run."""

    site: int
    samples: int
    #: Time of the samples, less that of instructions that do not wait.
    stall_ns: float
    #: Time of nearby instructions that do not wait.
    others_ns: float
    #: Bytes that each sample stands for.
    spans: Floats
    #: Bytes that a stream reads or writes; 0 if another place in its loop has the same bytes; None
    #: if it is not a stream.
    streamed_bytes: float | None
    #: Number of the group of nearby instructions (``_LOOP_BYTES``) that contains the place. A loop
    #: may stream through several sites.
    loop: int
    follows_pointer: bool
    is_store: bool
    #: Whether the accesses are known to have missed all caches; otherwise this is estimated.
    from_memory: bool = False


@dataclass(frozen=True)
class ProgramSamples(ProgramData):
    """A sampled run."""

    stalls: tuple[Stalls, ...]
    #: User CPU time in which each loop streams.
    loops_ns: dict[int, float]
    #: User CPU time of the whole run.
    user_ns: float
    samples: int
    period_ns: float
    #: Fraction of the samples at accesses whose data is unknown.
    unknown_share: float


@dataclass(frozen=True)
class _Run:
    """All clock samples with their sites, the time that each stands for, and the places in the
    code."""

    clock: Samples
    sites: NDArray[np.int64]
    each_ns: float
    code: list[SampledCode]
    period_ns: float


def read_samples(
    sampler: Sampler,
    user_s: float,
    period_ns: float,
    faults: PageFaults,
    resident: Resident | None = None,
    *,
    whole_sites: bool = False,
) -> ProgramSamples:
    """Read what a sampler has seen. ``user_s``: user CPU time of the sampled programs;
    ``resident``, ``whole_sites``: see ``held_data``."""
    import numpy as np

    samples = ordered_samples(sampler)
    is_clock = samples["kind"] == CLOCK
    clock = samples[is_clock]
    held = held_data(sampler, samples, faults, resident, whole_sites=whole_sites)
    each_ns = user_s * 1e9 / max(len(clock), 1)
    run = _Run(clock, held.numbers[is_clock], each_ns, sampler.code(), period_ns)
    stalls, loops_ns = _stalls(run)
    with_access = np.array([place["bytes"] > 0 for place in run.code] or [False])
    unknown = with_access[clock["code"]] & (clock["address"] == 0) if len(clock) else np.zeros(0)
    return ProgramSamples(
        held.sites,
        held.sizes,
        held.touched,
        tuple(stalls),
        loops_ns,
        user_s * 1e9,
        len(clock),
        period_ns,
        float(unknown.sum()) / max(len(clock), 1),
    )


def _stalls(run: _Run) -> tuple[list[Stalls], dict[int, float]]:
    """All stalls, and the times of the loops that stream."""
    import numpy as np

    if not len(run.clock):
        return [], {}
    codes, counts = np.unique(run.clock["code"], return_counts=True)
    around = _Surroundings(run.code, dict(zip(codes.tolist(), counts.tolist(), strict=True)))
    groups = run.clock["code"].astype(np.int64) << 32 | run.sites
    has_data = run.clock["address"] != 0
    if not has_data.any():
        return [], {}
    order = np.argsort(groups[has_data], kind="stable")
    accesses, groups = run.clock[has_data][order], groups[has_data][order]
    ends = np.flatnonzero(np.diff(groups)) + 1
    sites = groups[np.append(0, ends)] & 0xFFFFFFFF
    parts = np.split(accesses, ends)
    streams = [_stream(part, run) for part in parts]
    made = [
        _stalls_of(run, part, int(site), around, stream)
        for part, site, stream in zip(parts, sites, streams, strict=True)
    ]
    loops = _streaming_loops(made, streams)
    for numbers in loops.values():
        for site in {made[n].site for n in numbers}:
            _count_once(made, [(n, parts[n]) for n in numbers if made[n].site == site], run)
    _, times, threads = _course(run.clock)
    loops_ns = {
        loop: time_of([streams[n] for n in numbers], times, threads) * run.each_ns
        for loop, numbers in loops.items()
    }
    return made, loops_ns


def _stream(samples: Samples, run: _Run) -> Stream:
    """The stream of accesses, with its bytes in the whole run: not all of it is sampled."""
    found = stream_of(*_course(samples), run.period_ns)
    return replace(found, bytes=found.bytes * run.each_ns / run.period_ns)


def _streaming_loops(stalls: list[Stalls], streams: list[Stream]) -> dict[int, list[int]]:
    """Loops that stream, each with the numbers of its stalls."""
    loops: defaultdict[int, list[int]] = defaultdict(list)
    for number, stream in enumerate(streams):
        if stream.bytes:
            loops[stalls[number].loop].append(number)
    return loops


def _count_once(made: list[Stalls], places: list[tuple[int, Samples]], run: _Run) -> None:
    """Bytes that several places in a loop pass together, such as the loads of an unrolled loop.

    Their samples together form one stream, whose bytes are counted once: for the stores first, as a
    line is read for a store and written; the rest for the loads.
    """
    import numpy as np

    together = np.concatenate([part for _, part in places])
    together = together[np.lexsort((together["time_ns"], together["thread"]))]
    left = _stream(together, run).bytes
    if not left:
        return
    for of_stores in (True, False):
        numbers = [number for number, _ in places if made[number].is_store == of_stores]
        own = sum(made[number].streamed_bytes or 0.0 for number in numbers)
        part = min(left / own, 1.0) if own else 0.0
        for number in numbers:
            streamed = part * (made[number].streamed_bytes or 0.0)
            made[number] = replace(made[number], streamed_bytes=streamed)
        left -= part * own


def _course(samples: Samples) -> tuple[NDArray[np.uint64], Floats, NDArray[np.int64]]:
    """Addresses, times and threads."""
    import numpy as np

    times = samples["time_ns"].astype(np.float64)
    return samples["address"].copy(), times, samples["thread"].astype(np.int64)


def _stalls_of(
    run: _Run, part: Samples, site: int, around: _Surroundings, stream: Stream
) -> Stalls:
    code = int(part["code"][0])
    place = run.code[code]
    share = around.stalling_share(code)
    return Stalls(
        site=site,
        samples=len(part),
        stall_ns=len(part) * share * run.each_ns,
        others_ns=around.others(code) * len(part) / around.counts[code] * run.each_ns,
        spans=spread_of(*_course(part)).bytes,
        streamed_bytes=stream.bytes or None,
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
        """The fraction of an instruction's samples that are stalls: those beyond the mean number of
        nearby instructions without an access, which retire equally often."""
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
        """Number of the group of nearby instructions that contains this one."""
        return int(self._loops[self._places[code]])
