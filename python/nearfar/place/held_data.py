"""Data of a sampled run: its sites, the site of each sample, sizes, first touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.place.program_data import PAGE_BYTES, Touched
from nearfar.place.regions import SampledRegion
from nearfar.place.sample_records import FAULT
from nearfar.place.sampled_sites import Located, LocatedTouches, SiteTable
from nearfar.place.sampled_sizes import (
    SMALL_IN_LARGE,
    PageFaults,
    pages_of,
    sizes_of,
    touched_of,
    with_life,
)
from nearfar.place.sites import Site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import Sampler
    from nearfar.place.sample_records import Samples

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int64]


#: The place of data that is not the program's (native/sample/data_regions.hpp).
UNKNOWN = 0
#: Memory with at least this many sampled faults per 2 MiB is on small pages: of their 512 first
#: touches, at least one in 16 is sampled.
_FAULTS_ON_SMALL_PAGES = 2


@dataclass(frozen=True)
class Resident:
    """Pages of running processes that were in memory: their number from each address on.

    ``regions``: all that were seen, if some are gone by now; ``gone_bytes``: in memory of those.
    """

    processes: NDArray[np.int32]
    addresses: NDArray[np.uint64]
    pages: Floats
    regions: tuple[SampledRegion, ...] = ()
    gone_bytes: int = 0


@dataclass(frozen=True)
class HeldData:
    """The sites of a run with live bytes and first touches. ``numbers``: the site of each
    sample."""

    sites: tuple[Site, ...]
    numbers: Numbers
    sizes: Floats
    touched: Touched


def held_data(
    sampler: Sampler,
    samples: Samples,
    faults: PageFaults,
    resident: Resident | None = None,
    *,
    whole_sites: bool = False,
) -> HeldData:
    """Describe the sites of samples. ``resident``: of processes that ran before, whose first
    touches were not sampled. ``whole_sites``: large mappings are not divided."""
    table = SiteTable(sampler, resident.regions if resident is not None else ())
    located = table.locate(samples["process"], samples["address"], samples["data"])
    touched = _touches(table, samples, located, faults, resident)
    numbers = located.sites
    if not whole_sites:
        numbers, touched = table.divide(located, samples["kind"] != FAULT, touched)
    pages = pages_of(table.sites, touched.located.sites, touched.pages, faults)
    sizes = sizes_of(table, samples, pages)
    sites = tuple(with_life(site, sizes[site.number], pages) for site in table.sites)
    return HeldData(sites, numbers, sizes, touched_of(sites, pages, faults))


def _touches(
    table: SiteTable,
    samples: Samples,
    located: Located,
    faults: PageFaults,
    resident: Resident | None,
) -> LocatedTouches:
    """First touches: sampled page faults, which stand for all of them, or pages in memory. Those of
    unknown data are left out: they are of the allocation log, which the program runs without."""
    import numpy as np

    if resident is not None:
        located = table.locate(resident.processes, resident.addresses, None)
        return LocatedTouches(located, resident.pages).once(table.shared())
    is_fault = samples["kind"] == FAULT
    pages = samples["period"][is_fault].astype(np.float64)
    if len(pages):
        pages *= max(faults.count, 1) / pages.sum()
    pages = np.where(samples["data"][is_fault] == UNKNOWN, 0.0, pages)
    touched = located.where(is_fault)
    if faults.everywhere_large:
        pages[_on_large_pages(touched)] *= SMALL_IN_LARGE
    return LocatedTouches(touched, pages)


def _on_large_pages(touched: Located) -> NDArray[np.bool_]:
    """Touches that brought in a large page each: such a page fits the mapping, and was not touched
    first again and again, as small pages of the same mapping are."""
    import numpy as np

    large = np.uint64(SMALL_IN_LARGE * PAGE_BYTES)
    pages = touched.addresses // large
    fits = (pages * large >= touched.begins) & ((pages + np.uint64(1)) * large <= touched.ends)
    for site in np.unique(touched.sites[fits]):
        mine = fits & (touched.sites == site)
        of_processes = np.stack([touched.processes[mine].astype(np.uint64), pages[mine]])
        if mine.sum() >= _FAULTS_ON_SMALL_PAGES * np.unique(of_processes, axis=1).shape[1]:
            fits[mine] = False
    return fits
