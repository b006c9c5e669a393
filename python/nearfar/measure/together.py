"""Plans for contention between tiers, with sizes that fit into the time of a study."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar._native import parse_tier
from nearfar.measure.compete import CompetePlan
from nearfar.measure.pipeline import QUICK_ELEMENTS, QUICK_ITERATIONS, PipelinePlan
from nearfar.measure.stencil import StencilPlan
from nearfar.measure.teams import Teams

#: Emulates far memory on a machine without one.
STAND_IN = "paced:dram@optane-100"
#: Size of the array that both sides share: 128 MiB.
ROWS, COLS = 2048, 8192
#: One in this many rows is far if no prediction gives a better split.
FAR_SHARE = 8

Sides = tuple[str, str]


def _is_far(tier: str) -> bool:
    parsed = parse_tier(tier)
    return parsed["node"] >= 0 or parsed["persists"] == "flush"


def far_tier(tiers: Sequence[str]) -> str:
    """The first far tier, or an emulated one."""
    real = [t for t in tiers[1:] if _is_far(t)]
    return (real or [STAND_IN])[0]


def teams(cpus: tuple[int, ...]) -> Teams:
    """One far thread on a CPU, and near threads on all other CPUs."""
    return Teams(max(len(cpus) - 1, 1), 1, cpus)


def compete_plan(
    sides: Sides, threads: Teams, array_bytes: int, *, curve: bool = False
) -> CompetePlan:
    """Near and far threads that copy concurrently.

    ``curve``: measure with one thread, half of them, and all but one in far memory.
    """
    both = threads.near_threads + threads.far_threads
    counts = sorted({1, both // 2, both - 1}) if curve else [threads.far_threads]
    splits = tuple((both - far, far) for far in counts)
    return CompetePlan("far-far", *sides, array_bytes, threads.cpus, splits)


def stencil_plan(sides: Sides, threads: Teams, seed: int) -> StencilPlan:
    """The stencil, compared with all rows near and all rows far."""
    return StencilPlan(
        ROWS, COLS, ROWS // FAR_SHARE, "direct", *sides, threads, seed, with_alone=True
    )


def pipeline_plan(sides: Sides, threads: Teams, seed: int) -> PipelinePlan:
    """The pipeline with a small size."""
    return PipelinePlan(QUICK_ELEMENTS, QUICK_ITERATIONS, *sides, threads, seed)
