"""A trace in the form that advice requires: sites with sizes over time, and total counts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from nearfar import _native
from nearfar.errors import BadInputError
from nearfar.place.program_data import PARTS, ProgramData, Touched, resident_fraction
from nearfar.place.sites import Frame, Site
from nearfar.records.choices import SiteKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import (
        TraceCollected,
        TraceFrame,
        TraceSample,
        TraceSite,
        TraceTouched,
        TraceTouches,
    )

#: Maximum records in the model; longer traces are sampled by blocks at even distances.
MAX_RECORDS = 2_000_000
#: Records of a block, or a stretch of a long run (docs/formats/trace.md).
BLOCK_RECORDS = 1 << 16


@dataclass(frozen=True)
class ProgramTrace(ProgramData):
    """A traced run. For a run traced in windows, counts of sites are extrapolated from the
    windows."""

    path: Path
    sample: TraceSample
    records: int  # including left out ones
    touches: TraceTouches  # of a run traced in windows
    instructions: int
    ending: str  # what is wrong with the file; empty if it is complete


def read_trace(path: Path, collected: TraceCollected | None = None) -> ProgramTrace:
    """Read a trace; ``collected`` has counts of records that are not in the file. Raises
    BadInputError if the trace holds no record."""
    sample = _native.TraceSample(str(path), MAX_RECORDS)
    stats = sample.stats()
    if not stats["records"]:
        raise BadInputError(
            f"{path} holds no access to memory: {stats['ending'] or 'all stayed in the caches'}",
            "give the program more data, or name a host with smaller caches (--host)",
        )
    live_bytes = sample.live_bytes(PARTS)
    recorded = [_site(i, site, live_bytes[i][0]) for i, site in enumerate(stats["sites"])]
    left_out = stats["totals"]["left_out"]
    touched = _touched((collected or {"touched": sample.touched})["touched"], len(recorded))
    touches = collected["touches"] if left_out and collected else _native.TraceTouches()
    sizes = _sizes(recorded, live_bytes, in_windows=left_out > 0)
    for site in recorded:
        sizes[site.number] *= resident_fraction(site, touched.small[site.number], site.reads)
    return ProgramTrace(
        tuple(recorded),
        sizes,
        touched,
        path,
        sample,
        stats["records"] + left_out,
        touches,
        stats["totals"]["instructions"],
        stats["ending"],
    )


def _touched(recorded: TraceTouched, sites: int) -> Touched:
    """Lists may be shorter than the number of sites; the missing entries are 0."""
    small, large = (
        tuple(recorded[size][i] if i < len(recorded[size]) else 0 for i in range(sites))
        for size in ("small", "large")
    )
    return Touched(small, large, recorded["fixed_pages"])


def _site(number: int, recorded: TraceSite, life: float) -> Site:
    records = recorded["records"]
    writes = records["write_back"] + records["nt_store"]
    return Site(
        number,
        cast("SiteKind", recorded["kind"]),
        tuple(_frames(recorded["frames"])),
        recorded["allocations"],
        recorded["allocated_bytes"],
        recorded["peak_bytes"],
        sum(records.values()) - writes,
        writes,
        min(life, 1.0),
    )


def _frames(recorded: Iterable[TraceFrame]) -> Iterable[Frame]:
    for frame in recorded:
        yield Frame(os.fsdecode(frame["path"]), frame["build_id"], frame["offset"])


def _sizes(
    sites: list[Site], live_bytes: list[tuple[float, list[int]]], *, in_windows: bool
) -> NDArray[np.float64]:
    """Sizes over time, scaled to the counted peak: objects without a record held some. In windows
    most objects have no record, and those with one give the lifetimes of the others."""
    import numpy as np

    sizes = np.array([held for _, held in live_bytes], dtype=float).reshape(len(sites), PARTS)
    for site in sites:
        seen = sizes[site.number].max()
        if site.peak_bytes > seen > 0 and in_windows:
            sizes[site.number] *= site.peak_bytes / seen
        elif site.peak_bytes > seen:
            sizes[site.number] += site.peak_bytes - seen
    return sizes
