"""The near fraction of each site that makes a program fastest, under the load that it makes itself.

    T = base + Σ_i [x_i · near_i · L_near(b_near)/L_near(0)
                    + (1 - x_i) · far_i · L_far(b_far)/L_far(0)]
    b_near = Σ_i x_i · bytes_i / T + background,  b_far likewise;  neither is above its peak

x_i: fraction of a site that is near, in eighths; near_i, far_i: its stalls if all of it is near or
far and the memory is idle; L: loaded latency by bandwidth and fraction of reads, as measured. The
fixed point and the exact search are in the native layer ``interleave``.

Source: bandwidth-latency curves of Mess (docs/references.md); fixed points of closed queueing
models, Reiser and Lavenberg 1980. Limits: accesses of a site are spread evenly over its pages; the
load is even over the run; bandwidth above the end of a curve is refused, so that a time at the end
of an open curve is an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar._native import PlacementTime
from nearfar.errors import BadInputError
from nearfar.model import tables
from nearfar.model.results import InterleavedSite, InterleavePrediction
from nearfar.profiles.loaded_curves import LoadedCurves, curves_of
from nearfar.records.depth import LoadedTier
from nearfar.records.figures import Origin, Provenance, with_origin

if TYPE_CHECKING:
    from nearfar._native import Placement, TierLoad
    from nearfar.records.profile import Profile

#: Parts of a site that are placed separately.
STEPS = 8
#: Placements of the exact search; a second at most.
_MAX_NODES = 2_000_000
_NS = 1e9
_AT_THE_END = 0.995
_UNLIMITED = 1e18
_COLUMNS = ("site", "size_bytes", "read_bytes", "write_bytes", "near_stall_s")
_LOAD = re.compile(r"(near|far)=(\d+(?:\.\d+)?)\s*GB/s(?:@(\d+(?:\.\d+)?)%)?")
_MODELLED = Provenance(origin=Origin.MODELLED, statistic="model", samples=0)
_LIMITS = (
    "Accesses of a site are spread evenly over its pages, and over the time of the run.",
    "No latency is extrapolated beyond the end of a measured curve.",
)

#: near_stall_ns, far_stall_ns, read_bytes, write_bytes, size_bytes
SiteTuple = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class SiteLoad:
    """A site: bytes that it holds, its memory traffic in the run, and its stalls on idle memory.

    ``rule``: conditions that name it in a plan, if they are known.
    """

    name: str
    size_bytes: float
    read_bytes: float
    write_bytes: float
    near_stall_s: float
    far_stall_s: float
    rule: str = ""

    def native(self) -> SiteTuple:
        """The tuple of the native core."""
        return (
            self.near_stall_s * _NS,
            self.far_stall_s * _NS,
            self.read_bytes,
            self.write_bytes,
            self.size_bytes,
        )

    def interleaved(self, near_share: float) -> InterleavedSite:
        """The record of the site with this fraction in near memory."""
        return InterleavedSite(
            name=self.name,
            near_share=near_share,
            size_bytes=self.size_bytes,
            read_bytes=self.read_bytes,
            write_bytes=self.write_bytes,
        )


@dataclass(frozen=True)
class Load:
    """Traffic of other programs in bytes/s."""

    reads: float = 0.0
    writes: float = 0.0


@dataclass(frozen=True)
class LoadedMemory:
    """A memory, its curves, what others use of it, and how much of it may be used."""

    name: str
    curves: LoadedCurves
    background: Load = Load()
    capacity_bytes: float = _UNLIMITED

    def native(self) -> tuple[list[tuple[float, float, float]], float, float, float]:
        """The tuple of the native core."""
        return (
            self.curves.points(),
            self.background.reads,
            self.background.writes,
            self.capacity_bytes,
        )

    @property
    def idle_ns(self) -> float:
        """Latency at the lowest load of the highest fraction of reads."""
        return min(point.latency for point in self.curves.curves[max(self.curves.curves)])


def loaded_memory_of(profile: Profile) -> LoadedMemory:
    """A memory from its profile. Raises BadInputError if it has no latency or no bandwidth."""
    return LoadedMemory(profile.name, curves_of(profile))


def state_of(memory: LoadedMemory) -> TierLoad:
    """The memory with its background load alone. Raises NativeError if it has no such bandwidth."""
    times = PlacementTime(_NS, memory.native(), memory.native())
    found = times.time([], [], 1)
    assert found is not None  # nothing is placed
    return found["near"]


def parse_background(texts: Sequence[str]) -> dict[str, Load]:
    """Loads of both sides: ``near=40GB/s``, or ``far=5GB/s@67%`` with the fraction of reads.

    Raises BadInputError for anything else, and for a side that is named twice.
    """
    loads: dict[str, Load] = {}
    for text in texts:
        match = _LOAD.fullmatch(text.strip())
        reads = float(match[3] or 100) / 100 if match else 0.0
        if match is None or reads > 1:
            raise BadInputError(
                f"'{text}' is not a background load", "write it like near=40GB/s or far=5GB/s@67%"
            )
        if match[1] in loads:
            raise BadInputError(f"{match[1]} has two background loads", "give their sum")
        rate = float(match[2]) * 1e9
        loads[match[1]] = Load(rate * reads, rate * (1 - reads))
    return loads


def read_sites(path: str | Path, near: LoadedMemory, far: LoadedMemory) -> list[SiteLoad]:
    """Sites of a CSV file. Without a column ``far_stall_s``, stalls grow with the idle latency.

    Raises BadInputError naming the cell.
    """
    rows = tables.read_rows(path, _COLUMNS)
    sites = []
    for row in rows:
        size, reads, writes, stall = (
            row.number_of(column, zero_allowed=True) for column in _COLUMNS[1:]
        )
        if "far_stall_s" in row.cells:
            far_stall = row.number_of("far_stall_s", zero_allowed=True)
        else:
            far_stall = stall * far.idle_ns / near.idle_ns
        name = row.cells["site"].strip()
        if not name:
            row.refuse("site", "nothing is there")
        rule = row.cells.get("rule", "").strip()
        sites.append(SiteLoad(name, size, reads, writes, stall, far_stall, rule))
    return sites


def predict(
    sites: Sequence[SiteLoad], base_s: float, near: LoadedMemory, far: LoadedMemory
) -> InterleavePrediction:
    """The fastest placement in eighths, next to simpler ones. ``base_s``: time without stalls.

    Raises NativeError if nothing fits.
    """
    times = PlacementTime(base_s * _NS, near.native(), far.native())
    rows = [site.native() for site in sites]
    best = times.solve(rows, STEPS, _MAX_NODES)
    whole = times.solve(rows, 1, _MAX_NODES) if _fits_whole(times, rows) else None
    uniform = _uniform(times, rows)
    near_all, far_all = (times.time(rows, [step] * len(rows), 1) for step in (1, 0))
    placements = {
        "time_s": best,
        "all_near_time_s": near_all,
        "all_far_time_s": far_all,
        "whole_sites_time_s": whole,
        "uniform_time_s": uniform,
    }
    return InterleavePrediction(
        steps=STEPS,
        exact=best["exact"],
        uniform_near_share=uniform["near_steps"][0] / STEPS if uniform and rows else None,
        sites=_interleaved(sites, best),
        near=loaded_tier(near, best["near"]),
        far=loaded_tier(far, best["far"]),
        limits=list(_LIMITS),
        upper_bounds=[key for key, found in placements.items() if _is_bound(found, near, far)],
        warnings=load_warnings(near, best["near"]) + load_warnings(far, best["far"]),
        provenance={key: _MODELLED for key, found in placements.items() if found is not None},
        time_s=best["time_ns"] / _NS,
        all_near_time_s=_seconds(near_all),
        all_far_time_s=_seconds(far_all),
        whole_sites_time_s=_seconds(whole),
        uniform_time_s=_seconds(uniform),
    )


def _interleaved(sites: Sequence[SiteLoad], found: Placement) -> list[InterleavedSite]:
    steps = zip(sites, found["near_steps"], strict=True)
    return [site.interleaved(step / STEPS) for site, step in steps]


def _seconds(found: Placement | None) -> float | None:
    return found["time_ns"] / _NS if found is not None else None


def _is_bound(found: Placement | None, near: LoadedMemory, far: LoadedMemory) -> bool:
    """Whether a placement uses a memory to the end of a curve that is not saturated."""
    if found is None:
        return False
    return _at_open_end(near, found["near"]) or _at_open_end(far, found["far"])


def _fits_whole(times: PlacementTime, rows: Sequence[SiteTuple]) -> bool:
    """Whether the far memory holds all sites, so that a placement of whole sites exists."""
    return times.time(rows, [0] * len(rows), 1) is not None


def _uniform(times: PlacementTime, rows: Sequence[SiteTuple]) -> Placement | None:
    """The fastest placement with one fraction for all sites: interleaving without sites."""
    tried = [times.time(rows, [step] * len(rows), STEPS) for step in range(STEPS + 1)]
    found = [one for one in tried if one is not None]
    return min(found, key=lambda one: one["time_ns"], default=None)


def loaded_tier(memory: LoadedMemory, state: TierLoad) -> LoadedTier:
    """The record of a memory while a program runs."""
    found = LoadedTier(
        name=memory.name,
        background_bytes_per_s=memory.background.reads + memory.background.writes,
        idle_latency_ns=memory.idle_ns,
        at_open_end=_at_open_end(memory, state),
        **state,
    )
    note = "by the memory's curve of latency against bandwidth"
    by_model = Provenance(origin=Origin.MODELLED, statistic="model", samples=0, note=note)
    return with_origin(found, by_model)


def _at_open_end(memory: LoadedMemory, state: TierLoad) -> bool:
    return state["utilization"] >= _AT_THE_END and memory.curves.is_open(state["read_share"])


def load_warnings(memory: LoadedMemory, state: TierLoad) -> list[str]:
    """Warnings of unknown properties of the memory in this state."""
    found = list(memory.curves.warnings)
    if _at_open_end(memory, state):
        found.append(
            f"{memory.name} is used to the end of a curve that is not saturated: its bandwidth may "
            "be higher, and the time is an upper bound"
        )
    if state["bandwidth_bytes_per_s"] > 0 and not memory.curves.covers(state["read_share"]):
        found.append(
            f"{memory.name} was not measured with {state['read_share']:.0%} reads: its nearest "
            "curve is used"
        )
    return found


def with_loads(
    near: LoadedMemory, far: LoadedMemory, background: Sequence[str]
) -> tuple[LoadedMemory, LoadedMemory]:
    """Both memories with the background loads that the texts name."""
    loads = parse_background(background)
    return (
        replace(near, background=loads.get("near", Load())),
        replace(far, background=loads.get("far", Load())),
    )
