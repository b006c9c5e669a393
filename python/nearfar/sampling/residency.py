"""Which pages of running processes are in memory or in swap."""

from __future__ import annotations

import bisect
import os
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar.place.held_data import Resident
from nearfar.place.regions import SampledRegion
from nearfar.place.sampled_sites import regions_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import Sampler

#: Pages that are summed: 64 KiB.
_CHUNK_PAGES = 16
#: Pages that are found at once.
_MAX_PAGES = 1 << 17
#: Answers without a page after which the rest of a region is not looked at. Before Linux 6.7, an
#: answer is about 4 GiB: it takes too long to look at all of the address space that is reserved.
_MOST_EMPTY = 64
#: Minimum time between two looks.
_MIN_PAUSE_S = 0.2
#: Maximum fraction of the time that looks may take.
_MAX_SHARE = 0.01


@dataclass(frozen=True)
class _Pages:
    """Pages in memory, by chunks: address and number. ``look``: when they were seen."""

    look: int
    addresses: NDArray[np.uint64]
    pages: NDArray[np.float64]

    def within(self, begin: int, end: int) -> _Pages:
        """Those of some addresses. A chunk belongs to the range that it begins in."""
        import numpy as np

        first, last = np.searchsorted(self.addresses, np.array([begin, end], np.uint64))
        return _Pages(self.look, self.addresses[first:last], self.pages[first:last])

    def total(self) -> float:
        """The number of pages."""
        return float(self.pages.sum())


@dataclass(frozen=True)
class _Seen:
    """A region as of its last look, and its pages when most of them were in memory."""

    region: SampledRegion
    look: int
    most: _Pages

    def within(self, begin: int, end: int) -> _Seen:
        """A part of the region."""
        region = replace(self.region, begin=begin, end=end)
        return _Seen(region, self.look, self.most.within(begin, end))


class Residency:
    """Looks at the memory of running processes from time to time: some of it comes and goes.

    Regions grow, join and split between two looks. Each address belongs to the region that was seen
    there last; the pages of a region are those of one look, whatever regions they belonged to then.
    """

    def __init__(self) -> None:
        self._seen: list[_Seen] = []  # by process and address, without overlap
        self._looks = 0
        self._next = time.monotonic() + _MIN_PAUSE_S

    def look_sometimes(self, sampler: Sampler) -> None:
        """Look, unless the last time was a short while ago, or looking takes much time."""
        begin = time.monotonic()
        if begin < self._next:
            return
        self.look(sampler)
        cost = time.monotonic() - begin
        self._next = begin + max(_MIN_PAUSE_S, cost / _MAX_SHARE)

    def look(self, sampler: Sampler) -> None:
        """Note the pages in memory, or in swap, of anonymous memory of processes that still run."""
        self._looks += 1
        before = _ByAddress(self._seen)
        now = []
        for region in sorted(regions_now(sampler), key=_place):
            pages = _Pages(self._looks, *_pages_of(region))
            now.append(_Seen(region, self._looks, _most(pages, region, before.at(region))))
        after = _ByAddress(now)
        gone = [part for seen in self._seen for part in _left(seen, after.at(seen.region))]
        self._seen = sorted([*now, *gone], key=lambda seen: _place(seen.region))

    def resident(self) -> Resident:
        """Everything that was seen; of regions that overlap, only the latest one."""
        import numpy as np

        gone = sum(seen.most.total() for seen in self._seen if seen.look < self._looks)
        nothing = _Pages(0, np.zeros(0, np.uint64), np.zeros(0))
        most = [nothing, *(seen.most for seen in self._seen)]
        processes = [0, *(seen.region.process for seen in self._seen)]
        return Resident(
            np.concatenate(
                [
                    np.full(len(its.pages), process, np.int32)
                    for process, its in zip(processes, most, strict=True)
                ]
            ),
            np.concatenate([its.addresses for its in most]),
            np.concatenate([its.pages for its in most]),
            tuple(seen.region for seen in self._seen),
            round(gone) * os.sysconf("SC_PAGESIZE"),
        )


def _place(region: SampledRegion) -> tuple[int, int]:
    return region.process, region.begin


class _ByAddress:
    """Regions without overlap, by process and address."""

    def __init__(self, seen: list[_Seen]) -> None:
        self._seen = seen
        self._ends = [(each.region.process, each.region.end) for each in seen]

    def at(self, region: SampledRegion) -> list[_Seen]:
        """Those that overlap a region."""
        first = bisect.bisect_right(self._ends, (region.process, region.begin))
        found = []
        for each in self._seen[first:]:
            if _place(each.region) >= (region.process, region.end):
                break
            found.append(each)
        return found


def _most(now: _Pages, region: SampledRegion, before: list[_Seen]) -> _Pages:
    """The pages of a region at the look with most of them. Those that were seen together before,
    in regions of the same name, are of one look."""
    import numpy as np

    looks: defaultdict[int, list[_Pages]] = defaultdict(list)
    for seen in before:
        if seen.region.name == region.name:
            looks[seen.most.look].append(seen.most.within(region.begin, region.end))
    joined = [
        _Pages(
            look,
            np.concatenate([part.addresses for part in parts]),
            np.concatenate([part.pages for part in parts]),
        )
        for look, parts in looks.items()
    ]
    return max([now, *joined], key=_Pages.total)


def _left(seen: _Seen, newer: list[_Seen]) -> Iterable[_Seen]:
    """The parts of a region that no newer one has taken the place of."""
    begin = seen.region.begin
    for each in newer:
        if begin < each.region.begin:
            yield seen.within(begin, each.region.begin)
        begin = max(begin, each.region.end)
    if begin < seen.region.end:
        yield seen.within(begin, seen.region.end)


def _pages_of(region: SampledRegion) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """The pages of a region in memory, by chunks that have some: address and number."""
    import numpy as np

    page_bytes = os.sysconf("SC_PAGESIZE")
    addresses, pages = [np.zeros(0, np.uint64)], [np.zeros(0)]
    for runs in _runs(region):
        first = np.array([(address - region.begin) // page_bytes for address, _, _ in runs])
        count = np.array([number for _, number, _ in runs])
        ends = np.cumsum(count)
        each = np.arange(ends[-1]) + np.repeat(first - (ends - count), count)
        chunks, used = np.unique(each // _CHUNK_PAGES, return_counts=True)
        addresses.append((chunks * (_CHUNK_PAGES * page_bytes) + region.begin).astype(np.uint64))
        pages.append(used.astype(float))
    return np.concatenate(addresses), np.concatenate(pages)


def _runs(region: SampledRegion) -> Iterable[list[tuple[int, int, int]]]:
    """Adjacent pages of a region: address and number, many at a time. Nothing of a process that
    ended, or that the caller may not look at."""
    from nearfar._native import NativeError, ProcessPages

    try:
        pages = ProcessPages.open(region.process)
    except NativeError:
        return
    at, empty = region.begin, 0
    while at < region.end and empty < _MOST_EMPTY:
        runs, at = pages.held(at, region.end, _MAX_PAGES)
        empty = 0 if runs else empty + 1
        if runs:
            yield runs
