"""Which memory of running processes is in pages: /proc/PID/pagemap (proc(5))."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nearfar.place.held_data import Resident

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


def resident_memory(sampler: Sampler) -> Resident:
    """The pages in memory, or in swap, of anonymous memory of processes that still run."""
    import numpy as np

    page_bytes = os.sysconf("SC_PAGESIZE")
    processes, addresses, pages = [], [], []
    for process, begin, end, _ in sampler.regions():
        for first, present in _present(process, begin // page_bytes, end // page_bytes):
            chunks = _chunks(present)
            used = np.flatnonzero(chunks)
            addresses.append(
                (first + used * _CHUNK_PAGES).astype(np.uint64) * np.uint64(page_bytes)
            )
            pages.append(chunks[used])
            processes.append(np.full(len(used), process, np.int32))
    if not pages:
        return Resident(np.zeros(0, np.int32), np.zeros(0, np.uint64), np.zeros(0))
    return Resident(np.concatenate(processes), np.concatenate(addresses), np.concatenate(pages))


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
