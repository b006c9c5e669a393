"""Sudden drops of a thread's speed: when they occur, and their causes as the kernel reports them.

A drop is a sequence of iterations whose rate is below ``SLOW`` times the thread's median rate. Its
excess is its duration minus that of as many median iterations. A drop has a cause only if the cause
accounts for at least half of the excess. Otherwise the drop is reported as unexplained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nearfar.records.choices import DropCause

if TYPE_CHECKING:
    from nearfar._native import CompeteThread

#: Fraction of the median rate below which an iteration belongs to a drop.
SLOW = 0.8
#: Minimum number of drops of one thread for which a period is derived.
MIN_FOR_PERIOD = 3
#: Maximum number of bytes that one page fault maps and clears: a transparent huge page.
_LARGEST_FAULT_BYTES = 2 << 20


@dataclass(frozen=True)
class Drop:
    """One drop of one thread. Times in seconds, ``start_s`` since the thread's start."""

    start_s: float
    length_s: float
    excess_s: float
    depth: float
    off_cpu_s: float
    steal_s: float
    involuntary_switches: int
    minor_faults: int
    major_faults: int
    cause: DropCause
    period_s: float | None = None


def iteration_seconds(thread: CompeteThread) -> np.ndarray:
    """Duration of each iteration."""
    return np.diff(np.asarray(thread["wall_ns"], dtype=float), prepend=0.0) * 1e-9


def find(thread: CompeteThread, iterations: int, iteration_bytes: int) -> list[Drop]:
    """The drops among the first ``iterations`` of a thread, with their period."""
    took = iteration_seconds(thread)[:iterations]
    if took.size == 0:
        return []
    typical = float(np.median(took))
    drops = [
        _drop(thread, took, first, last, typical, iteration_bytes)
        for first, last in _runs(took > typical / SLOW)
    ]
    if len(drops) < MIN_FOR_PERIOD:
        return drops
    period = float(np.median(np.diff([drop.start_s for drop in drops])))
    return [replace(drop, period_s=period) for drop in drops]


def _runs(slow: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last index of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], slow, [False])).astype(int)))
    for first, after in edges.reshape(-1, 2):
        yield int(first), int(after) - 1


def _drop(
    thread: CompeteThread, took: np.ndarray, first: int, last: int, typical: float, step: int
) -> Drop:
    length = float(took[first : last + 1].sum())
    excess = length - (last + 1 - first) * typical
    off = max(length - _grown(thread["cpu_ns"], first, last) * 1e-9, 0.0)
    steal = _grown(_bracketed(thread["steal_ns"], last), first, last) * 1e-9
    switches = _grown(thread["involuntary_switches"], first, last)
    minor = _grown(thread["minor_faults"], first, last)
    major = _grown(thread["major_faults"], first, last)
    zeroing = minor * _LARGEST_FAULT_BYTES * typical / step
    return Drop(
        start_s=float(took[:first].sum()),
        length_s=length,
        excess_s=excess,
        depth=1 - typical / float(took[first : last + 1].max()),
        off_cpu_s=off,
        steal_s=steal,
        involuntary_switches=switches,
        minor_faults=minor,
        major_faults=major,
        cause=_cause(excess, off, steal, switches, zeroing, major),
    )


def _cause(
    excess: float, off: float, steal: float, switches: int, zeroing: float, major: int
) -> DropCause:
    half = excess / 2
    if (major and off >= half) or zeroing >= half:
        return "page faults"
    if steal >= half:
        return "steal"
    return "pushed aside" if switches and off >= half else "unexplained"


def _grown(running: Sequence[int], first: int, last: int) -> int:
    """Increase of a running total over some iterations."""
    return running[last] - (running[first - 1] if first else 0)


def _bracketed(running: Sequence[int], last: int) -> list[int]:
    """Totals that are sampled at intervals: for ``last``, the value of the next sample after it."""
    later = next((total for total in running[last:] if total != running[last]), running[last])
    return [*running[:last], later]
