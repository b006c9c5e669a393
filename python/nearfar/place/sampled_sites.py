"""The sites of a sampled run, and the site of each address.

Memory without a call chain is named as the kernel names it. Large mappings, and data of files, are
divided into parts, which are sites of their own (``place.mapping_parts``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from nearfar.place.mapping_parts import Touches, part_at, parts_of
from nearfar.place.regions import Regions, SampledRegion
from nearfar.place.sites import Frame, Part, Site
from nearfar.records.choices import SiteKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import SampledData, Sampler

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Located:
    """Addresses with their sites; ``begins``, ``ends``: of the mapping that each is in, 0 if it
    cannot be divided."""

    processes: NDArray[np.int32]
    addresses: NDArray[np.uint64]
    sites: Numbers
    begins: NDArray[np.uint64]
    ends: NDArray[np.uint64]

    def where(self, kept: NDArray[np.bool_]) -> Located:
        """Some of the addresses."""
        return Located(
            self.processes[kept],
            self.addresses[kept],
            self.sites[kept],
            self.begins[kept],
            self.ends[kept],
        )

    def offsets(self) -> Numbers:
        """Offsets from the beginning of the mapping."""
        return (self.addresses - self.begins).astype("int64")


@dataclass(frozen=True)
class LocatedTouches:
    """First touches, and the small pages that each stands for."""

    located: Located
    pages: Floats

    def once(self, shared: set[int]) -> LocatedTouches:
        """Without pages of the sites ``shared`` that another process has at the same offset."""
        import numpy as np

        kept = np.full(len(self.pages), True)
        mine = np.flatnonzero(np.isin(self.located.sites, list(shared)))
        keys = np.stack([self.located.sites[mine], self.located.offsets()[mine]])
        order = np.lexsort((-self.pages[mine], keys[1], keys[0]))  # the most pages first
        repeats = (np.diff(keys[:, order], axis=1) == 0).all(axis=0)
        kept[mine[order[1:][repeats]]] = False
        return LocatedTouches(self.located.where(kept), self.pages[kept])


class SiteTable:
    """All sites, and the site of each place of the sampler (``sample::DataRegions``).

    Regions name memory of processes without an allocation log only. In the others, memory that the
    log does not have belongs to libc and the kernel.
    """

    def __init__(self, sampler: Sampler, regions: tuple[SampledRegion, ...] = ()) -> None:
        """``regions``: memory regions that were seen; by default, those at the end of the run."""
        import numpy as np

        self.places = sampler.data()
        self._files = sampler.files()
        self._build_ids = {os.fsdecode(path): build_id for path, build_id in self._files}
        self._regions = Regions(regions or regions_now(sampler))
        self.sites: list[Site] = []
        self._known: dict[tuple[str, tuple[Frame, ...], str], int] = {}
        self.numbers = np.array([self._site_of(place) for place in self.places] or [0], np.int64)
        self._logged = np.array(sampler.logged(), np.int32)
        self._is_outside = np.array([_is_region(place) for place in self.places] or [False])
        self._begins = np.array([place["begin"] for place in self.places] or [0], np.uint64)
        self._ends = self._begins + np.array([p["bytes"] for p in self.places] or [0], np.uint64)

    def _site_of(self, place: SampledData) -> int:
        frames = tuple(
            Frame(os.fsdecode(self._files[file][0]), self._files[file][1], offset)
            for file, offset in place["frames"]
        )
        selector = _selector(place, frames)
        if _is_region(place):
            frames = ()  # the selector names it
        number = self._site(place["kind"], frames, selector)
        if not place["begin"]:
            self.sites[number] = _with(self.sites[number], place)
        return number

    def shared(self) -> set[int]:
        """Sites whose memory several processes can have: mapped files."""
        return {site.number for site in self.sites if site.selector.startswith("map=file:")}

    def _site(self, kind: str, frames: tuple[Frame, ...], selector: str) -> int:
        number = self._known.setdefault((kind, frames, selector), len(self.sites))
        if number == len(self.sites):
            of_kind = cast("SiteKind", kind)
            self.sites.append(Site(number, of_kind, frames, 0, 0, 0, 0, 0, 0.0, selector))
        return number

    def locate(
        self,
        processes: NDArray[np.int32],
        addresses: NDArray[np.uint64],
        data: NDArray[np.uint32] | None,
    ) -> Located:
        """The sites of addresses. ``data``: their places; None: they are in regions."""
        import numpy as np

        if data is None:
            sites = np.full(len(addresses), -1, np.int64)
            begins, outside = np.zeros(len(addresses), np.uint64), np.full(len(addresses), True)
            ends = begins.copy()
        else:
            sites = self.numbers[data]
            inside = (addresses >= self._begins[data]) & (addresses < self._ends[data])
            begins = np.where(inside, self._begins[data], 0).astype(np.uint64)
            ends = np.where(inside, self._ends[data], 0).astype(np.uint64)
            outside = self._is_outside[data]
        outside = outside & ~np.isin(processes, self._logged)
        found = np.full(len(addresses), -1, np.int64)
        found[outside] = self._regions.find(processes[outside], addresses[outside])
        for index in np.unique(found[found >= 0]):
            region = self._regions.all[index]
            number = self._site_of_region(region)
            if number >= 0:
                sites[found == index] = number
                begins[found == index], ends[found == index] = region.begin, region.end
        return Located(processes, addresses, sites, begins, ends)

    def _site_of_region(self, region: SampledRegion) -> int:
        """The site of a region, or -1 if a plan cannot name it."""
        if region.is_statics:
            frames = (Frame(region.name, self._build_ids.get(region.name, ""), 0),)
            return self._site("statics", frames, _globals_selector(frames[0]))
        selector = region.selector()
        return self._site("mapping", (), selector) if selector else -1

    def divide(
        self, located: Located, is_sample: NDArray[np.bool_], touched: LocatedTouches
    ) -> tuple[Numbers, LocatedTouches]:
        """Make sites of the parts of large mappings. Returns the sites of all samples and of the
        touches."""
        import numpy as np

        numbers, touch_sites = located.sites.copy(), touched.located.sites.copy()
        for site in list(self.sites):
            if not (site.selector or site.kind == "mapping"):
                continue
            mine = (located.sites == site.number) & (located.begins != 0)
            of_touches = (touched.located.sites == site.number) & (touched.located.begins != 0)
            if not _is_one_mapping(located, mine) or not of_touches.any():
                continue
            touches = Touches(touched.located.offsets()[of_touches], touched.pages[of_touches])
            parts = parts_of(located.offsets()[mine & is_sample], touches)
            if len(parts) == 1:
                continue
            of_parts = self._part_sites(site, parts)
            found = part_at(parts, located.offsets()[mine])
            # Samples without an offset go to the part with most samples.
            numbers[located.sites == site.number] = of_parts[np.bincount(found).argmax()]
            numbers[mine] = of_parts[found]
            touch_sites[of_touches] = of_parts[part_at(parts, touches.offsets)]
        return numbers, replace(touched, located=replace(touched.located, sites=touch_sites))

    def _part_sites(self, site: Site, parts: list[Part]) -> Numbers:
        import numpy as np

        numbers = [site.number, *range(len(self.sites), len(self.sites) + len(parts) - 1)]
        made = [replace(site, number=n, part=part) for n, part in zip(numbers, parts, strict=True)]
        self.sites[site.number] = made[0]
        self.sites += made[1:]
        return np.array(numbers, np.int64)


def regions_now(sampler: Sampler) -> tuple[SampledRegion, ...]:
    """The regions of running processes, as of the last poll."""
    return tuple(
        SampledRegion(process, begin, end, os.fsdecode(name), is_statics)
        for process, begin, end, name, is_statics in sampler.regions()
    )


def _is_region(place: SampledData) -> bool:
    return place["kind"] == "mapping" and not _has_call(place)


def _has_call(place: SampledData) -> bool:
    return bool(place["frames"]) and place["frames"][0][1] != 0


def _selector(place: SampledData, frames: tuple[Frame, ...]) -> str:
    """The name in a plan of a place without a call chain. Regions are named later."""
    if not frames or frames[0].offset:
        return ""
    if place["kind"] == "statics" and place["begin"]:
        return _globals_selector(frames[0])
    return SampledRegion(0, 0, 0, frames[0].path).selector() if place["kind"] == "mapping" else ""


def _globals_selector(file: Frame) -> str:
    """Name in a plan of the data of a program or library; empty if it has none."""
    return f"globals={file.in_plan().rpartition('+')[0]}" if file.is_nameable() else ""


def _is_one_mapping(located: Located, mine: NDArray[np.bool_]) -> bool:
    """Whether each process has one mapping of a site, so that offsets in it have a meaning."""
    import numpy as np

    processes, begins = located.processes[mine], located.begins[mine].astype(np.int64)
    mappings = np.unique(np.stack([processes, begins]), axis=1).shape[1]
    return bool(mappings) and mappings == len(np.unique(processes))


def _with(site: Site, place: SampledData) -> Site:
    """The site with the allocations of one more process."""
    return replace(
        site,
        allocations=site.allocations + place["allocations"],
        allocated_bytes=site.allocated_bytes + place["allocated_bytes"],
        peak_bytes=site.peak_bytes + place["peak_bytes"],
        life_share=1.0,
    )
