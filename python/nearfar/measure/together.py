"""Near and far memory at work together, as a study measures it: sizes that fit its time."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar._native import TierSpec, parse_tier
from nearfar.measure.compete import CompetePlan
from nearfar.measure.pipeline import QUICK_ELEMENTS, QUICK_ITERATIONS, PipelinePlan
from nearfar.measure.stencil import StencilPlan
from nearfar.measure.teams import Teams

#: What stands in for far memory on a machine that has none.
STAND_IN = "paced:dram@optane-100"
#: Of the array that both sides share: 128 MiB.
ROWS, COLS = 2048, 8192
#: Of its rows that lie far where nothing predicts a better share.
FAR_SHARE = 8

Sides = tuple[str, str]


def _is_far(tier: TierSpec) -> bool:
    return tier["node"] >= 0 or tier["persists"] == "flush"


def far_tier(tiers: Sequence[str]) -> str:
    """The first tier that is far memory, or an emulated one."""
    real = [t for t in tiers[1:] if _is_far(parse_tier(t))]
    return (real or [STAND_IN])[0]


def teams(cpus: tuple[int, ...]) -> Teams:
    """One far thread, near ones on all other processors."""
    return Teams(max(len(cpus) - 1, 1), 1, cpus)


def compete_plan(
    sides: Sides, threads: Teams, array_bytes: int, *, curve: bool = False
) -> CompetePlan:
    """Copies within each memory at once; ``curve``: with half and most of the threads far, too."""
    both = threads.near_threads + threads.far_threads
    counts = sorted({1, both // 2, both - 1}) if curve else [threads.far_threads]
    splits = tuple((both - far, far) for far in counts)
    return CompetePlan("far-far", *sides, array_bytes, threads.cpus, splits)


def stencil_plan(sides: Sides, threads: Teams, seed: int) -> StencilPlan:
    """The stencil, compared with all rows near and all rows far."""
    return StencilPlan(
        ROWS, COLS, ROWS // FAR_SHARE, "direct", *sides, threads, seed, beside_alone=True
    )


def pipeline_plan(sides: Sides, threads: Teams, seed: int) -> PipelinePlan:
    """The pipeline, small."""
    return PipelinePlan(QUICK_ELEMENTS, QUICK_ITERATIONS, *sides, threads, seed)
