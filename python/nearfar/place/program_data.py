"""A program as advice requires it, however it was observed: sites, and sizes over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from nearfar.place.memory_costs import SMALL_PAGE_SHIFT
from nearfar.place.sites import Site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Number of parts of a run with separate sizes.
PARTS = 128
PAGE_BYTES = 1 << SMALL_PAGE_SHIFT
#: Blocks of at least this many bytes may be reserved and only partly used.
_SPARSE_BYTES = 1 << 20
#: Size of blocks from which on each is a mapping of its own, whatever was freed before
#: (mallopt(3), DEFAULT_MMAP_THRESHOLD_MAX).
_MAPPED_BYTES = 32 << 20


@dataclass(frozen=True)
class Touched:
    """First touches of pages by site, if all pages are small (4 KiB) or large (2 MiB); a page that
    was unmapped is touched first again. ``fixed_pages``: peak number of small pages of memory that
    no plan moves. ``everywhere_large``: mapped memory has large pages where the heap has."""

    small: tuple[int, ...]
    large: tuple[int, ...]
    fixed_pages: int
    everywhere_large: bool = False


def resident_fraction(site: Site, pages: float, read_pages: float = math.inf) -> float:
    """Fraction of a site's blocks on pages that were touched: only these use memory. ``pages``:
    that the site touched first; ``read_pages``: at most as many have lines that it read. A block
    that the allocator did not map for it may be on pages that another site touched first."""
    block_bytes = site.allocated_bytes / max(site.allocations, 1)
    if site.kind != "heap" or not site.peak_bytes or block_bytes < _SPARSE_BYTES:
        return 1.0
    if block_bytes < _MAPPED_BYTES:
        pages = max(pages, read_pages)
    return min(pages * PAGE_BYTES / site.peak_bytes, 1.0)


@dataclass(frozen=True)
class ProgramData:
    """A program's data. Sizes are sites by parts, in bytes."""

    sites: tuple[Site, ...]
    sizes: NDArray[np.float64]
    touched: Touched

    def movable(self) -> list[Site]:
        """Sites that a plan can move."""
        return [site for site in self.sites if site.is_movable()]

    @cached_property
    def movable_peak_bytes(self) -> int:
        """Peak bytes of all movable sites together."""
        held = self.sizes[[site.number for site in self.movable()]].sum(axis=0)
        return int(held.max(initial=0))

    def fixed_bytes(self) -> int:
        """Peak touched bytes of memory that no plan moves."""
        return self.touched.fixed_pages * PAGE_BYTES

    def held_bytes(self, number: int) -> int:
        """Peak bytes of a site: allocated for the heap, touched for all other sites."""
        if self.sites[number].kind == "heap" or self.sites[number].is_movable():
            return int(self.sizes[number].max())
        return self.touched.small[number] * PAGE_BYTES

    def first_touches_ns(
        self, number: int, near: tuple[float, bool], far: tuple[float, bool]
    ) -> float:
        """First-touch times of a site's pages on far memory less those on near memory. A memory is
        given by the time of a first touch in ns and whether its pages are large."""
        if self.sites[number].kind != "heap" and not self.touched.everywhere_large:
            if near[1] or far[1]:
                return 0.0
            return self.touched.small[number] * (far[0] - near[0])
        near_ns, far_ns = (
            (self.touched.large if large else self.touched.small)[number] * touch_ns
            for touch_ns, large in (near, far)
        )
        return far_ns - near_ns
