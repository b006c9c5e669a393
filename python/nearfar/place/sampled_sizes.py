"""Memory of the sites of a sampled run: first touches, and bytes over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar.place.program_data import PAGE_BYTES, PARTS, Touched, resident_fraction
from nearfar.place.sites import Site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import SampledData
    from nearfar.place.sample_records import Samples
    from nearfar.place.sampled_sites import SiteTable

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int64]

#: Small pages in a large one.
SMALL_IN_LARGE = 512
#: Mean size of blocks from which on they are mapped and unmapped (mallopt(3), M_MMAP_THRESHOLD).
_RETURNED_BYTES = 128 << 10


@dataclass(frozen=True)
class PageFaults:
    """All page faults of the run, of which some were sampled; ``are_large``: the heap was on large
    pages; ``everywhere_large``: the kernel uses large pages where they fit."""

    count: int
    are_large: bool = False
    everywhere_large: bool = False


def pages_of(
    sites: Sequence[Site], touching: Numbers, touched: Floats, faults: PageFaults
) -> Floats:
    """First touches of small pages by site, given the site and the pages of each touch. If the
    heap's pages are large, a fault brings in 512 small ones, at most as many as the site's blocks
    have."""
    import numpy as np

    known = touching >= 0
    pages: Floats = np.bincount(touching[known], touched[known], len(sites)).astype(np.float64)
    for site in sites if faults.are_large or faults.everywhere_large else []:
        if site.kind == "heap":
            most = max(_max_touched_bytes(site) / PAGE_BYTES, pages[site.number])
            pages[site.number] = min(pages[site.number] * SMALL_IN_LARGE, most)
    return pages


def _max_touched_bytes(site: Site) -> int:
    """An upper bound of what a site touches first: allocators return large blocks to the kernel,
    so that each is touched anew, and use the memory of small blocks again."""
    if site.allocated_bytes >= _RETURNED_BYTES * site.allocations:
        return site.allocated_bytes
    return site.peak_bytes


def touched_of(sites: tuple[Site, ...], pages: Floats, faults: PageFaults) -> Touched:
    """First touches by site, and the pages of memory outside of the heap that no plan moves."""
    import numpy as np

    small = tuple(round(count) for count in pages)
    large = tuple(-(-count // SMALL_IN_LARGE) for count in small)
    fixed = sum(
        int(np.round(pages[site.number])) for site in sites if not _is_heap_or_movable(site)
    )
    return Touched(small, large, fixed, faults.everywhere_large)


def _is_heap_or_movable(site: Site) -> bool:
    return site.kind == "heap" or site.is_movable()


def sizes_of(table: SiteTable, samples: Samples, pages: Floats) -> Floats:
    """Bytes of sites over the run: live ones of the heap, touched ones of large blocks and of other
    memory."""
    import numpy as np

    sizes = np.zeros((len(table.sites), PARTS))
    if not len(samples):
        return sizes
    begin, end = int(samples["time_ns"].min()), int(samples["time_ns"].max())
    width = max(end - begin, 1) / PARTS
    for number, place in zip(table.numbers, table.places, strict=True):
        sizes[number] += _sizes_of(place, begin, width)
    for site in table.sites:
        if site.kind == "heap":
            sizes[site.number] *= resident_fraction(site, pages[site.number])
        else:
            sizes[site.number] = _touched_part(site, sizes[site.number], pages[site.number])
    return sizes


def _sizes_of(place: SampledData, begin_ns: int, width_ns: float) -> Floats:
    """Live bytes of a place over the run, of which the log knows the peak but not its time: it is
    taken to be when most bytes were seen, or else when the place was seen first."""
    import numpy as np

    filled = np.zeros(PARTS)
    parts = [0]
    for at_ns, live in place["held"]:
        parts.append(min(max(int((at_ns - begin_ns) / width_ns), 0), PARTS - 1))
        filled[parts[-1] :] = live
    if place["peak_bytes"] > filled.max():
        first = parts[1] if len(parts) > 1 else 0
        filled[int(filled.argmax()) if filled.any() else first] = place["peak_bytes"]
    return filled


def _touched_part(site: Site, mapped: Floats, pages: float) -> Floats:
    """Of mapped bytes over time, those that are touched; all the time if that is not known."""
    import numpy as np

    touched_bytes = pages * PAGE_BYTES
    if site.part is not None or not mapped.any():
        return np.full(PARTS, touched_bytes)
    share = min(touched_bytes / float(mapped.max()), 1.0)
    return np.asarray(mapped * share)


def _mapped_bytes(site: Site) -> int:
    """Bytes that the calls of a site mapped, touched or not: what a run with the plan counts. Of a
    part, those in it. 0 if no call was seen."""
    if site.part is None:
        return site.allocated_bytes
    begin, end = site.part
    return max(min(end or site.allocated_bytes, site.allocated_bytes) - begin, 0)


def with_life(site: Site, sizes: Floats, pages: Floats) -> Site:
    """The site with the mean lifetime of its bytes, from their sizes over the run. Of memory that
    is not of the heap, what is touched counts."""
    if site.kind != "heap":
        touched_bytes = round(float(sizes.max(initial=0.0)))
        whole = site.allocated_bytes if site.part is None else 0
        return replace(
            site,
            peak_bytes=touched_bytes,
            allocated_bytes=_mapped_bytes(site) or round(float(pages[site.number]) * PAGE_BYTES),
            life_share=min(float(sizes.mean()) / max(whole, touched_bytes, 1), 1.0),
        )
    if not site.allocated_bytes:
        return site
    return replace(site, life_share=min(float(sizes.mean()) / site.allocated_bytes, 1.0))
