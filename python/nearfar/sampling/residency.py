"""Which pages of running processes are in memory: /proc/PID/pagemap (proc(5))."""

from __future__ import annotations

import bisect
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.place.held_data import Resident
from nearfar.place.regions import SampledRegion
from nearfar.place.sampled_sites import regions_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import Sampler

_ENTRY_BYTES = 8
_IN_MEMORY_BIT, _SWAPPED_BIT = 63, 62
#: Pages that are summed: 64 KiB.
_CHUNK_PAGES = 16
#: Entries that are read at once.
_MAX_READ = 1 << 17
#: Minimum time between two looks.
_MIN_PAUSE_S = 0.2
#: Maximum fraction of the time that looks may take.
_MAX_SHARE = 0.01


@dataclass
class _Seen:
    """A region, and its pages at the time when most of them were in memory."""

    region: SampledRegion
    look: int
    addresses: NDArray[np.uint64]
    pages: NDArray[np.float64]


class Residency:
    """Looks at the memory of running processes from time to time: some of it comes and goes."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int, str], _Seen] = {}
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
        for region in regions_now(sampler):
            addresses, pages = _pages_of(region)
            key = (region.process, region.begin, region.name)
            before = self._seen.get(key)
            if before is not None and before.pages.sum() > pages.sum():
                addresses, pages = before.addresses, before.pages
            self._seen[key] = _Seen(region, self._looks, addresses, pages)

    def resident(self) -> Resident:
        """Everything that was seen; of regions that overlap, only the latest one."""
        import numpy as np

        kept: list[_Seen] = []
        ranges: list[tuple[int, int, int]] = []  # of those, by address
        for seen in sorted(self._seen.values(), key=lambda one: -one.look):
            its = (seen.region.process, seen.region.begin, seen.region.end)
            at = bisect.bisect(ranges, its)
            if not any(_overlap(its, newer) for newer in ranges[max(at - 1, 0) : at + 1]):
                ranges.insert(at, its)
                kept.append(seen)
        gone = sum(float(one.pages.sum()) for one in kept if one.look < self._looks)
        none = _Seen(SampledRegion(0, 0, 0, ""), 0, np.zeros(0, np.uint64), np.zeros(0))
        return Resident(
            np.concatenate(
                [np.full(len(one.pages), one.region.process, np.int32) for one in [none, *kept]]
            ),
            np.concatenate([one.addresses for one in [none, *kept]]),
            np.concatenate([one.pages for one in [none, *kept]]),
            tuple(one.region for one in kept),
            round(gone) * os.sysconf("SC_PAGESIZE"),
        )


def _overlap(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


def _pages_of(region: SampledRegion) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """The pages of a region in memory, by chunks that have some: address and number."""
    import numpy as np

    page_bytes = os.sysconf("SC_PAGESIZE")
    addresses, pages = [np.zeros(0, np.uint64)], [np.zeros(0)]
    first, end = region.begin // page_bytes, region.end // page_bytes
    for at, present in _present(region.process, first, end):
        chunks = _chunks(present)
        used = np.flatnonzero(chunks)
        addresses.append((at + used * _CHUNK_PAGES).astype(np.uint64) * np.uint64(page_bytes))
        pages.append(chunks[used])
    return np.concatenate(addresses), np.concatenate(pages)


def _chunks(present: NDArray[np.bool_]) -> NDArray[np.float64]:
    import numpy as np

    padded = np.zeros(-(-len(present) // _CHUNK_PAGES) * _CHUNK_PAGES)
    padded[: len(present)] = present
    return np.asarray(padded.reshape(-1, _CHUNK_PAGES).sum(axis=1))


def _present(process: int, first: int, end: int) -> Iterable[tuple[int, NDArray[np.bool_]]]:
    """Pages from a first one on, and whether each is in memory. Nothing of a process that ended, or
    that the caller may not look at."""
    import numpy as np

    try:
        file = os.open(f"/proc/{process}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        while first < end:
            wanted = min(end - first, _MAX_READ) * _ENTRY_BYTES
            entries = np.frombuffer(os.pread(file, wanted, first * _ENTRY_BYTES), np.uint64)
            if not len(entries):
                return
            either = np.uint64(1 << _IN_MEMORY_BIT | 1 << _SWAPPED_BIT)
            yield first, (entries & either) != 0
            first += len(entries)
    except OSError:
        return
    finally:
        os.close(file)
