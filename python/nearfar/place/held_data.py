"""What a sampled run held in memory: its sites, the site of each sample, sizes, first touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.place.program_data import Touched
from nearfar.place.sample_records import FAULT
from nearfar.place.sampled_sites import Located, LocatedTouches, SiteTable
from nearfar.place.sampled_sizes import PageFaults, pages_of, sizes_of, touched_of, with_life
from nearfar.place.sites import Site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import Sampler
    from nearfar.place.sample_records import Samples

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Resident:
    """Pages of running processes that were in memory: their number from each address on."""

    processes: NDArray[np.int32]
    addresses: NDArray[np.uint64]
    pages: Floats


@dataclass(frozen=True)
class HeldData:
    """The sites of a run with live bytes and first touches. ``numbers``: the site of each
    sample."""

    sites: tuple[Site, ...]
    numbers: Numbers
    sizes: Floats
    touched: Touched


def held_data(
    sampler: Sampler, samples: Samples, faults: PageFaults, resident: Resident | None = None
) -> HeldData:
    """Describe the sites of samples. ``resident``: of processes that ran before, whose first
    touches were not sampled."""
    table = SiteTable(sampler, samples)
    located = table.locate(samples["process"], samples["address"], samples["data"])
    touched = _touches(table, samples, located, faults, resident)
    numbers, touched = table.divide(located, samples["kind"] != FAULT, touched)
    pages = pages_of(table.sites, touched.located.sites, touched.pages, faults)
    sizes = sizes_of(table, samples, pages)
    sites = tuple(with_life(site, sizes[site.number], pages) for site in table.sites)
    return HeldData(sites, numbers, sizes, touched_of(sites, pages))


def _touches(
    table: SiteTable,
    samples: Samples,
    located: Located,
    faults: PageFaults,
    resident: Resident | None,
) -> LocatedTouches:
    """First touches: sampled page faults, which stand for all of them, or pages in memory."""
    import numpy as np

    if resident is not None:
        located = table.locate(resident.processes, resident.addresses, None)
        return LocatedTouches(located, resident.pages).once(table.shared())
    is_fault = samples["kind"] == FAULT
    pages = samples["period"][is_fault].astype(np.float64)
    if len(pages):
        pages *= max(faults.count, 1) / pages.sum()
    return LocatedTouches(located.where(is_fault), pages)
