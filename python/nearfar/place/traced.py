"""A trace as advice needs it: its sites with their sizes over time, and what it counted in all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from nearfar import _native
from nearfar.errors import BadInputError
from nearfar.place.sites import Frame, Kind, Site

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nearfar._native import (
        TraceCollected,
        TraceFrame,
        TraceSample,
        TraceSite,
        TraceTouches,
    )

#: Parts of a run for which sizes are told.
PARTS = 128
#: Records that the model goes through; of longer traces it takes blocks at even distances.
MOST_RECORDS = 2_000_000
#: Of a block, or a stretch of a long run (docs/formats/trace.md).
BLOCK_RECORDS = 1 << 16
_PAGE = 4096


@dataclass(frozen=True)
class Traced:
    """What was seen of a run. Sizes are sites by parts, in bytes. Of a run that was traced in
    windows, counts of sites are those of the windows, and as many more as they stand for."""

    path: Path
    sample: TraceSample
    sites: tuple[Site, ...]
    sizes: NDArray[np.float64]
    records: int  # left out or not
    fixed_pages: int  # touched, of 4 KiB: of stack, globals and mappings
    touches: TraceTouches  # of a run in windows
    instructions: int
    ending: str  # what is wrong with the file; empty where it is whole

    def heap(self) -> list[Site]:
        """Sites that a plan can move."""
        return [site for site in self.sites if site.is_movable()]

    @cached_property
    def heap_peak_bytes(self) -> int:
        """Most that the movable sites held together."""
        held = self.sizes[[site.number for site in self.heap()]].sum(axis=0)
        return int(held.max(initial=0))

    def fixed_bytes(self) -> int:
        """Pages of stack, globals and mappings that were touched, in bytes."""
        return self.fixed_pages * _PAGE


def read_trace(path: Path, collected: TraceCollected | None = None) -> Traced:
    """``collected`` tells of what was left out of the file. Raises BadInputError where the trace
    holds no record."""
    sample = _native.TraceSample(str(path), MOST_RECORDS)
    stats = sample.stats()
    if not stats["records"]:
        raise BadInputError(
            f"{path} holds no access to memory: {stats['ending'] or 'all stayed in the caches'}",
            "give the program more data, or name a host with smaller caches (--host)",
        )
    lives = sample.lives(PARTS)
    told = [_site(i, site, lives[i][0]) for i, site in enumerate(stats["sites"])]
    left_out = stats["totals"]["left_out"]
    fixed: int = sample.fixed_pages
    touches = _native.TraceTouches()
    if left_out and collected:
        fixed, touches = collected["fixed_pages"], collected["touches"]
    return Traced(
        path, sample, tuple(told), _sizes(told, lives, in_windows=left_out > 0),
        stats["records"] + left_out, fixed, touches, stats["totals"]["instructions"],
        stats["ending"],
    )  # fmt: skip


def _site(number: int, told: TraceSite, life: float) -> Site:
    records = told["records"]
    return Site(
        number, cast("Kind", told["kind"]), tuple(_frames(told["frames"])), told["allocations"],
        told["allocated_bytes"], told["peak_bytes"],
        records["load"] + records["store"] + records["prefetch"],
        records["write_back"] + records["nt_store"], min(life, 1.0),
    )  # fmt: skip


def _frames(told: Iterable[TraceFrame]) -> Iterable[Frame]:
    for frame in told:
        yield Frame(os.fsdecode(frame["path"]), frame["build_id"], frame["offset"])


def _sizes(
    sites: list[Site], lives: list[tuple[float, list[int]]], *, in_windows: bool
) -> NDArray[np.float64]:
    """Sizes over time, raised to the peak that was counted: objects without a record held some.
    In windows most have none, and those that have tell when the others lived."""
    import numpy as np

    sizes = np.array([life[1] for life in lives], dtype=float).reshape(len(sites), PARTS)
    for site in sites:
        seen = sizes[site.number].max()
        if site.peak_bytes > seen > 0 and in_windows:
            sizes[site.number] *= site.peak_bytes / seen
        elif site.peak_bytes > seen:
            sizes[site.number] += site.peak_bytes - seen
    return sizes
