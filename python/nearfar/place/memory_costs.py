"""Costs of a line on a device, from its profile and a host, for the core model of `trace`.

The time of a streamed line is that of one thread on the device, if the profile has bandwidth by
threads; otherwise it follows from the device's bandwidth. For a device without either, a thread is
assumed to have as many lines in flight as on near memory. Devices with timings only (``dram-snu``)
cost an access on a closed page.

A core has at most as many lines in flight on another memory as on near memory. The bandwidth of a
profile, of near or far memory, is therefore capped at what a thread draws from this machine's
memory (or may draw, if that was measured while other programs ran), times the ratio of latencies if
the profile's is shorter. A tier that was measured on this machine is capped only if its latency is
not shorter; it gets the latency of near memory if the ranges of both latencies overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nearfar.errors import BadInputError
from nearfar.profiles.pacing import LINES_IN_FLIGHT
from nearfar.records.figures import Origin
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    from nearfar.records.profile import Profile

#: Instructions in flight: those of Zen 5; Skylake has 224, Golden Cove 512.
WINDOW = 448
#: Time of an instruction, ns, in which it brings the window forward while loads are outstanding:
#: four a cycle at 2.5 GHz, which is Skylake's width and half of Zen 5's. What it takes beyond that
#: hides no latency.
DISPATCH_NS = 0.1
#: Pages of the second TLB level: between Skylake's 1536 and Zen 5's 4096.
TLB_ENTRIES, TLB_WAYS = 2048, 16

#: Size of the smallest pages, 4 KiB.
SMALL_PAGE_SHIFT = 12

#: Relative range of a latency without a range in its profile.
_DEFAULT_RANGE = 0.1

MemoryTuple = tuple[float, float, float, float, float, int]
CoreTuple = tuple[float, int, int, int, int, float, float]


class PageWalk(NamedTuple):
    """Time that a page walk adds to a load, in ns: to one whose address another load has to return
    first, and to one of several in flight, whose walks overlap."""

    alone: float = 0.0
    overlapped: float = 0.0

    def of(self, *, dependent: bool) -> float:
        """The dependent or the overlapped cost."""
        return self.alone if dependent else self.overlapped


@dataclass(frozen=True)
class Memory:
    """A memory as a core sees it; times in ns, and the range of its latency."""

    name: str
    latency: float
    low: float
    high: float
    line: float
    write_line: float
    walk: PageWalk
    page_shift: int
    touch: float = 0.0  # the first touch of a page, ns
    touch_low: float = 0.0
    touch_high: float = 0.0
    walk_ends: tuple[PageWalk, PageWalk] | None = None  # the range of a page walk, if it has one
    capped: bool = False  # its bandwidth is what a thread draws from the memory here
    assumed: bool = False  # its profile has no bandwidth

    @property
    def walks(self) -> tuple[PageWalk, PageWalk]:
        """The range of a page walk."""
        return self.walk_ends or (self.walk, self.walk)

    @property
    def large_pages(self) -> bool:
        """Whether its pages are larger than the smallest."""
        return self.page_shift > SMALL_PAGE_SHIFT

    @property
    def page_bytes(self) -> int:
        """Bytes of its pages."""
        return 1 << self.page_shift

    def at(self, latency: float, walk: PageWalk | None = None) -> MemoryTuple:
        """The tuple of the native core, with this latency, and the cost of a page walk."""
        walk = self.walk if walk is None else walk
        return latency, self.line, self.write_line, *walk, self.page_shift


@dataclass(frozen=True)
class Work:
    """A program's instruction time without memory stalls, and its dependent loads.

    ``chained``: fraction of the loads that wait for the previous load, of those whose address is
    not known from the trace to be loaded.
    """

    instruction_ns: float
    chained: float = 0.0


@dataclass(frozen=True)
class Core:
    """A processor core as far as cache misses are concerned."""

    window: int
    parallelism: int

    def at(self, work: Work) -> CoreTuple:
        """The tuple of the native core."""
        return (
            min(work.instruction_ns, DISPATCH_NS),
            self.window,
            self.parallelism,
            TLB_ENTRIES,
            TLB_WAYS,
            work.chained,
            max(work.instruction_ns - DISPATCH_NS, 0.0),
        )


def memory_of(profile: Profile, like: Memory | None = None) -> Memory:
    """A memory from a profile; pages, walks and first touches default to those of ``like``.

    Raises BadInputError if a profile has neither a latency nor timings to compute one from.
    """
    latency, low, high, write = _latency(profile)
    if like and measured_here(profile) and low <= like.high and like.low <= high:
        latency, write = like.latency, max(write, like.latency)
        low, high = min(low, latency), max(high, latency)
    read_line, write_line = _lines(profile, latency, write)
    walk, shift = (like.walk, like.page_shift) if like else (PageWalk(), SMALL_PAGE_SHIFT)
    walks = like.walks if like else None
    touch = (like.touch, like.touch_low, like.touch_high) if like else (0.0, 0.0, 0.0)
    if "page_walk_ns" in profile.figures:
        walk, walks = _walks(profile)
        shift = int(profile.scalar("page_bytes")).bit_length() - 1
    if "first_touch_ns" in profile.figures:
        touch = (profile.scalar("first_touch_ns"), *profile.figure("first_touch_ns").interval())
    assumed = not _has_bandwidth(profile)
    if like and assumed:
        read_line = write_line = like.line * latency / like.latency
    capped = False
    if like and (latency >= like.latency or not measured_here(profile)):
        part = min(latency / like.latency, 1.0)
        capped = part * like.line > read_line
        read_line = max(read_line, part * like.line)
        write_line = max(write_line, part * like.write_line)
    return Memory(
        profile.name,
        *(latency, low, high, read_line, write_line, walk, shift),
        *touch,
        walks,
        capped,
        assumed,
    )


def _lines(profile: Profile, latency: float, write_latency: float) -> tuple[float, float]:
    """Times of a line that is read and of one that is written, in ns."""
    read = _line(profile, "read", "read_bandwidth_bytes_per_s", latency)
    given = {"write_bandwidth_bytes_per_s", "ntwrite_bandwidth_by_threads_bytes_per_s"}
    if write_latency == latency and not given & set(profile.figures):
        return read, read
    return read, _line(profile, "ntwrite", "write_bandwidth_bytes_per_s", write_latency)


def _has_bandwidth(profile: Profile) -> bool:
    one_thread = profile.largest_bandwidth_alone("read") is not None
    return one_thread or "read_bandwidth_bytes_per_s" in profile.figures


def _walks(profile: Profile) -> tuple[PageWalk, tuple[PageWalk, PageWalk]]:
    """The page walk of a profile, and the ends of its range. One that was not measured with several
    loads in flight is taken not to overlap."""
    alone = profile.figure("page_walk_ns")
    overlapped = profile.figures.get("overlapped_page_walk_ns", alone)
    low, high = map(PageWalk, alone.interval(), overlapped.interval())
    return PageWalk(alone.value or 0.0, overlapped.value or 0.0), (low, high)


def measured_here(profile: Profile) -> bool:
    """Whether a profile is of a tier of this machine."""
    figure = profile.figures.get("read_latency_ns")
    return figure is not None and figure.origin == Origin.MEASURED


def why_faster(near: Memory, far: Memory) -> str:
    """Why a program can run faster with data on far memory, from the figures of both memories."""
    if far.latency < near.latency:
        return f"it answers in {far.latency:.0f} ns, near memory in {near.latency:.0f} ns"
    if far.walk < near.walk or far.page_shift > near.page_shift:
        return "its pages cost less to look up"
    if far.touch < near.touch:
        return "its new pages cost less"
    return "two memories have more bandwidth than one"


def _latency(profile: Profile) -> tuple[float, float, float, float]:
    """Latency of a read with its range, and of a write."""
    if "read_latency_ns" in profile.figures:
        read = profile.scalar("read_latency_ns")
        low, high = profile.figure("read_latency_ns").interval()
        if low == high:
            low, high = low * (1 - _DEFAULT_RANGE), high * (1 + _DEFAULT_RANGE)
        write = (
            profile.scalar("write_latency_ns") if "write_latency_ns" in profile.figures else read
        )
        return read, low, high, write
    if "tRCD_ns" in profile.figures or "tRCD_cycles" in profile.figures:
        row, burst = profile.timing_ns("tRCD"), profile.timing_ns("burst")
        read, write = row + profile.timing_ns("CL") + burst, row + burst + profile.timing_ns("tRP")
        return read, read * (1 - _DEFAULT_RANGE), read * (1 + _DEFAULT_RANGE), write
    raise BadInputError(
        f"the device {profile.name} has neither read_latency_ns nor timings (tRCD, CL, burst)",
        f"see `nearfar show {profile.name}`; name another, such as cxl-asic or ddr5-remote",
    )


def _line(profile: Profile, kernel: str, all_threads: str, latency: float) -> float:
    """Time of a streamed line, in ns."""
    alone = profile.largest_bandwidth_alone(kernel)
    if alone is not None:
        return LINE_BYTES / alone * 1e9
    if all_threads in profile.figures:
        return LINE_BYTES / profile.scalar(all_threads) * 1e9
    return latency / LINES_IN_FLIGHT


def core_of(near: Profile) -> Core:
    """The core with the parallelism probed on near memory, if available."""
    parallel = near.figures.get("read_parallelism")
    lines = round(parallel.value) if parallel and parallel.value else LINES_IN_FLIGHT
    return Core(window=WINDOW, parallelism=min(max(lines, 1), 64))
