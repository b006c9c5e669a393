"""Where pages came from, by address: one byte a page, in blocks."""

from __future__ import annotations

from collections.abc import Iterator

from nearfar.units import PAGE_BYTES

_BLOCK_PAGES = 1 << 14


class PageOrigins:
    """A node for each page that has one. Ranges begin and end at pages."""

    def __init__(self) -> None:
        self._blocks: dict[int, bytearray] = {}

    def set_first(self, address: int, pages: int, node: int) -> None:
        """Set the node of pages that have none."""
        for block, low, high in self._parts(address, pages):
            values = self._blocks.setdefault(block, bytearray(_BLOCK_PAGES))
            part = values[low:high]
            if part.count(0) < high - low:
                part = part.replace(b"\0", bytes((node + 1,)))
            else:
                part = bytearray((node + 1,)) * (high - low)
            values[low:high] = part

    def clear(self, start: int, end: int) -> None:
        """Forget the pages of a range of addresses."""
        first, last = start // PAGE_BYTES // _BLOCK_PAGES, (end - 1) // PAGE_BYTES // _BLOCK_PAGES
        for block in [block for block in self._blocks if first <= block <= last]:
            begin = block * _BLOCK_PAGES
            low = max(start // PAGE_BYTES - begin, 0)
            high = min(-(-end // PAGE_BYTES) - begin, _BLOCK_PAGES)
            self._blocks[block][low:high] = bytes(max(high - low, 0))
            if not any(self._blocks[block]):
                del self._blocks[block]

    def count(self, address: int, pages: int) -> int:
        """Number of the pages that have a node."""
        found = 0
        for block, low, high in self._parts(address, pages):
            values = self._blocks.get(block)
            if values is not None:
                found += high - low - values.count(0, low, high)
        return found

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Runs of pages with the same node, as address, pages and node, in the order of
        addresses."""
        address, pages, node = 0, 0, -1
        for block in sorted(self._blocks):
            values = self._blocks[block]
            at = 0
            while at < _BLOCK_PAGES:
                value = values[at]
                length = len(values) - at - len(values[at:].lstrip(bytes((value,))))
                start = (block * _BLOCK_PAGES + at) * PAGE_BYTES
                at += length
                if node == value - 1 and start == address + pages * PAGE_BYTES:
                    pages += length
                    continue
                if node >= 0:
                    yield address, pages, node
                address, pages, node = start, length, value - 1
        if node >= 0:
            yield address, pages, node

    @staticmethod
    def _parts(address: int, pages: int) -> Iterator[tuple[int, int, int]]:
        """The blocks of a run, each with the first and the last page in it, the last excluded."""
        at, end = address // PAGE_BYTES, address // PAGE_BYTES + pages
        while at < end:
            block, low = divmod(at, _BLOCK_PAGES)
            high = min(low + end - at, _BLOCK_PAGES)
            yield block, low, high
            at += high - low
