"""Parts of large mappings in which samples are equally dense: hot pages apart from cold ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.model.blocks import equal_blocks
from nearfar.place.program_data import PAGE_BYTES
from nearfar.place.sites import Part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Offsets = NDArray[np.int64]

#: Memory below this size, or with fewer samples, is not divided.
MIN_BYTES, MIN_SAMPLES = 8 << 20, 100
MAX_PARTS = 8
_MAX_BINS = 256
#: Width of a bin in small and in large mappings: a huge page is not divided in the latter.
_MIN_BIN_BYTES, _HUGE_BYTES, _LARGE_BYTES = 64 << 10, 2 << 20, 64 << 20


@dataclass(frozen=True)
class Touches:
    """First touches at offsets from the beginning of a mapping, in pages of 4 KiB."""

    offsets: Offsets
    pages: Floats


def parts_of(offsets: Offsets, touches: Touches) -> list[Part]:
    """Divide a mapping, given the offsets of samples in it. One part covers all of it."""
    import numpy as np

    if len(offsets) < MIN_SAMPLES or touches.pages.sum() * PAGE_BYTES < MIN_BYTES:
        return [(0, None)]
    extent = int(max(offsets.max(), touches.offsets.max())) + 1
    width = _bin_bytes(extent)
    bins = -(-extent // width)
    events = np.bincount(offsets // width, minlength=bins).astype(np.float64)
    pages = np.bincount(touches.offsets // width, touches.pages, minlength=bins)
    used = np.flatnonzero((events > 0) | (pages > 0))
    blocks = equal_blocks(events[used], np.maximum(pages[used], 1.0), MAX_PARTS)
    begins = [0, *(int(used[begin]) * width for begin, _ in blocks[1:])]
    ends: list[int | None] = [*begins[1:], None]
    return list(zip(begins, ends, strict=True))


def _bin_bytes(extent: int) -> int:
    least = _HUGE_BYTES if extent >= _LARGE_BYTES else _MIN_BIN_BYTES
    wanted = -(-extent // _MAX_BINS)
    return max(least, 1 << (wanted - 1).bit_length())


def part_at(parts: list[Part], offsets: Offsets) -> NDArray[np.int64]:
    """The number of the part of each offset."""
    import numpy as np

    return np.searchsorted([begin for begin, _ in parts], offsets, "right") - 1
