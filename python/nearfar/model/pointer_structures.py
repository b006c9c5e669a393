"""Time of an operation on a pointer structure in any memory: the general form.

Equation: in a sequence of operations, one takes
  t_software + streams + W/M + (fences·p - hidden) + (lines - fences)·w,
  W = Σ hits_k·(l_k - l_1) + misses_near·(L_near - l_1) + misses_far·(L_far - l_1)
      + tlb_hits·t_tlb + walks·t_walk
  p, w    times of a fence and of one more line under it
  streams max(0, lines_streamed·s - t_software): prefetchers read lines in order while software
          runs, at most one every s seconds
  M       1 for dependent operations, else 1 + window / t_software, the number of operations in the
          reorder window. Within an operation, each load depends on the one before
  hidden  fences·u + min(fences, 1)·min(p - u, W/M), u = min(p, window, t_software/max(fences, 1)):
          software overlaps with every fence; the loads between two changes overlap with one fence
  On files, every flush is an msync: flushes·t_sync takes the place of fences and lines.
t_software  measured in cache, less the modelled time of cache hits: a + b·loads, or
  a + start / entries if the operations create the structure
hits, misses, walks   accesses of the structure in the host's caches (`simulation.cache_misses`)
fences, lines, flushes   the store log of the same run
Value: mean over {flushes evict, keep} x {LRU, random}; of flushes only the host's kind, if known.
Interval: extremes over these x all ranges of host and device, including cache sizes, x M from 3/4
to 4/3 of its value.
Source: the design of nearfar; the overlap of an out-of-order core is approximated by a bound.
Limits: one thread; stores wait for fences only; bandwidth limits streams only, and all streams are
in `far`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from nearfar.model.host_costs import HostCosts
from nearfar.model.map_work import NOTHING, Constant
from nearfar.simulation.cache_misses import CacheVariant, OperationCounts

#: Relative variation of the same code in another run, on other pages, at another size.
DRIFT = 0.10
#: Interval of the number of overlapping operations, either way.
_OVERLAP_RANGE = 4 / 3
_HALVINGS = 30
#: Minimum seconds of software of any operation.
_MIN_SOFTWARE = 1e-9
#: Loads an operation that differ by a smaller factor give no slope.
_SAME = 1.1


@dataclass(frozen=True)
class Memory:
    """Costs of a memory in seconds: a load, a fence, one more line under a fence, an msync, a line
    of a stream. ``measured``: nearfar measured the fence on the machine of the prediction."""

    name: str
    load: Constant
    fence: Constant
    line: Constant
    sync: Constant | None = None
    stream: Constant = NOTHING
    measured: bool = False

    def at(self, end: str) -> Memory:
        """The same memory with all costs at one end of their ranges."""
        load, fence, line, stream = (
            Constant(*(float(getattr(cost, end)),) * 3)
            for cost in (self.load, self.fence, self.line, self.stream)
        )
        sync = None if self.sync is None else Constant(*(float(getattr(self.sync, end)),) * 3)
        return Memory(self.name, load, fence, line, sync, stream, self.measured)


@dataclass(frozen=True)
class Shape:
    """The counted accesses of one operation, and whether the next one waits for it.

    ``made``: entries of a structure that the operations create; 0 for an existing one.
    """

    counts: OperationCounts
    bytes_in_use: float
    dependent: bool = False
    made: int = 0


@dataclass(frozen=True)
class InCache:
    """An operation timed in cache, in seconds, and its counted accesses."""

    time: Constant
    shape: Shape
    #: The memory on which it was timed.
    memory: Memory


@dataclass(frozen=True)
class Software:
    """Seconds of software: a + b·loads, and the one-time cost of creating a structure."""

    at: Constant
    loads: float
    slope: float
    start: Constant = NOTHING

    def of(self, loads: float, made: int = 0) -> Constant:
        """Seconds of an operation with this many loads; ``DRIFT`` beyond the measured range."""
        more = self.slope * (loads - self.loads)
        share = 1 / made if made else 0.0
        value, low, high = (
            max(getattr(self.at, end) + more, 0.0) + getattr(self.start, end) * share
            for end in ("value", "low", "high")
        )
        return Constant(value, low * (1 - DRIFT), high * (1 + DRIFT))

    def slower(self, by: Constant) -> Software:
        """The same software on a slower or faster processor."""
        return Software(
            _times(self.at, by), self.loads, self.slope * by.value, _times(self.start, by)
        )


def _times(cost: Constant, by: Constant) -> Constant:
    return Constant(cost.value * by.value, cost.low * by.low, cost.high * by.high)


@dataclass(frozen=True)
class Parts:
    """Seconds of an operation by cause, without overlapped parts."""

    software: float
    streams: float
    cache_hits: float
    near_misses: float
    far_misses: float
    walks: float
    fences: float
    lines: float

    @property
    def total(self) -> float:
        """Seconds."""
        return (
            self.software
            + self.streams
            + self.cache_hits
            + self.near_misses
            + self.far_misses
            + self.walks
            + self.fences
            + self.lines
        )


@dataclass(frozen=True)
class OperationTime:
    """An operation's time: its parts at all values, the total's range, and the overlap."""

    parts: Parts
    low: float
    high: float
    overlap: float

    @property
    def constant(self) -> Constant:
        """Total with range."""
        return Constant(self.parts.total, self.low, self.high)


def loads_of(counts: OperationCounts) -> float:
    """Loads an operation."""
    return counts.variants[0].levels[0].loads


def software_of(samples: Sequence[InCache], host: HostCosts) -> Software:
    """Software from operations in cache: one, or a line through the smallest and the largest.

    If they create their structure, the additional time of the small ones is its start.
    """
    bare = sorted(
        ((loads_of(s.shape.counts), _bare(s, host)) for s in samples), key=lambda pair: pair[0]
    )
    (fewest, first), (most, last) = bare[0], bare[-1]
    if any(s.shape.made for s in samples):
        return _with_start([(s.shape.made, _bare(s, host)) for s in samples], fewest)
    if most < _SAME * fewest:
        return Software(_between([t for _, t in bare]), fewest, 0.0)
    return Software(last, most, max((last.value - first.value) / (most - fewest), 0.0))


def _with_start(made: Sequence[tuple[int, Constant]], loads: float) -> Software:
    """A line in 1 / entries, through the middles of the smaller and of the larger half."""
    ordered = sorted(made, key=lambda pair: pair[0])
    half = len(ordered) // 2
    few, many = ordered[:half], ordered[half:]
    small, large = (_between([t for _, t in part]) for part in (few, many))
    a, b = (sum(1 / n for n, _ in part) / len(part) for part in (few, many))
    start = Constant(
        *(
            max(x - y, 0.0) / (a - b)
            for x, y in (
                (small.value, large.value),
                (small.low, large.high),
                (small.high, large.low),
            )
        )
    )
    value = large.value - start.value * b
    return Software(
        Constant(value, min(large.low - start.value * b, value), large.high), loads, 0.0, start
    )


def _between(times: Sequence[Constant]) -> Constant:
    """The middle of several times, with their full range."""
    middle = sum(t.value for t in times) / len(times)
    return Constant(middle, min(t.low for t in times), max(t.high for t in times))


def _bare(sample: InCache, host: HostCosts) -> Constant:
    """The software part of a time: the rest is its cache hits and fences.

    Both depend on the software that overlaps with them, so it is found by search.
    """
    loads = loads_of(sample.shape.counts)

    def software(time: float) -> float:
        low, high = 0.0, time
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            guess = Software(Constant(middle, middle, middle), loads, 0.0)
            found = operation_time(sample.shape, guess, host, sample.memory)
            low, high = (middle, high) if found.parts.total < time else (low, middle)
        return (low + high) / 2

    return Constant(*map(software, (sample.time.value, sample.time.low, sample.time.high)))


def operation_time(shape: Shape, software: Software, host: HostCosts, far: Memory) -> OperationTime:
    """The general form for a structure in `far` on a host."""
    own = software.of(loads_of(shape.counts), shape.made)
    walks = host.walks.of_operation(shape.counts, shape.bytes_in_use)
    values = [
        _parts(shape, variant, _Prices.at(host, far, own, walks, "value"))
        for variant in shape.counts.likely
    ]
    mean = _mean([parts for parts, _ in values])
    ends = [
        _parts(shape, variant, _Prices.at(host, far, own, walks, end))[0].total
        for variant in shape.counts.variants
        for end in ("low", "high")
    ]
    overlap = sum(m for _, m in values) / len(values)
    return OperationTime(mean, min([mean.total, *ends]), max([mean.total, *ends]), overlap)


@dataclass(frozen=True)
class _Prices:
    """All constants at one end of their ranges; the low end has the widest overlap."""

    loads: tuple[float, ...]
    near: float
    far: float
    fence: float
    line: float
    sync: float | None
    stream: float
    software: float
    walks: float
    window: float
    overlap_factor: float

    @staticmethod
    def at(host: HostCosts, far: Memory, own: Constant, walks: Constant, end: str) -> _Prices:
        def of(cost: Constant) -> float:
            return float(getattr(cost, end))

        opposite = {"value": "value", "low": "high", "high": "low"}[end]
        factor = {"value": 1.0, "low": _OVERLAP_RANGE, "high": 1 / _OVERLAP_RANGE}[end]
        return _Prices(
            tuple(map(of, host.loads)),
            of(host.memory),
            of(far.load),
            of(far.fence),
            of(far.line),
            None if far.sync is None else of(far.sync),
            of(far.stream),
            of(own),
            of(walks),
            float(getattr(host.window, opposite)),
            factor,
        )


def _parts(shape: Shape, variant: CacheVariant, paid: _Prices) -> tuple[Parts, float]:
    """Parts under one assumption, and the number of overlapping operations."""
    first = paid.loads[0]
    levels = variant.levels
    hits = sum(
        (level.loads - level.load_misses) * max(cost - first, 0.0)
        for level, cost in zip(levels[1:], paid.loads[1:], strict=True)
    )
    far = variant.far_load_misses
    near = max(levels[-1].load_misses - far, 0.0)
    waits = (hits, near * (paid.near - first), far * (paid.far - first), paid.walks)
    overlap = 1.0
    if not shape.dependent:
        ahead = paid.window / max(paid.software, _MIN_SOFTWARE)
        overlap = max((1 + ahead) * paid.overlap_factor, 1.0)
    waited = [wait / overlap for wait in waits]
    streams = max(levels[-1].prefetches * paid.stream - paid.software, 0.0)
    fences, lines = _durable(shape.counts, paid, sum(waited))
    hits, near, far, walks = waited
    return Parts(paid.software, streams, hits, near, far, walks, fences, lines), overlap


def _durable(counts: OperationCounts, paid: _Prices, waited: float) -> tuple[float, float]:
    """Seconds of fences, or of msyncs, beyond their overlap; and of the lines under them."""
    if paid.sync is not None:
        return counts.flushes * paid.sync, 0.0
    fences = counts.fences
    under = min(paid.fence, paid.window, paid.software / max(fences, 1.0))
    hidden = fences * under + min(fences, 1.0) * min(paid.fence - under, waited)
    more_lines = max(counts.lines - fences, 0.0)
    return fences * paid.fence - hidden, more_lines * paid.line


def _mean(parts: Sequence[Parts]) -> Parts:
    count = len(parts)
    return Parts(*(sum(getattr(p, f.name) for p in parts) / count for f in fields(Parts)))
