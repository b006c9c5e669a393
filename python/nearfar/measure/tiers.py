"""What kind of figure a tier gives."""

from __future__ import annotations

import os
from collections.abc import Iterable

from nearfar._native import AccessProbe, parse_tier, tier_capacity_bytes
from nearfar.errors import BadInputError, MachineError
from nearfar.profiles.pacing import told
from nearfar.records.shape import Origin
from nearfar.units import KIB, MIB, format_size

#: Below it no cache of today ends.
LEAST_REGION = 64 * KIB


def check_tiers(tiers: Iterable[str]) -> None:
    """Refuse what is no tier, or not on this machine, before anything is measured."""
    for tier in tiers:
        tier_capacity_bytes(tier)


def check_region(tier: str, region_bytes: int | None) -> None:
    """Refuse a region that cannot be walked or does not fit, and a tier that cannot be mapped.

    Maps and touches one small piece, so that a refusal comes once and before any measurement.
    """
    if region_bytes is not None and region_bytes < LEAST_REGION:
        raise BadInputError(
            f"a region of {format_size(region_bytes)} is too small to tell caches from memory",
            f"give at least {format_size(LEAST_REGION)}",
        )
    room = tier_capacity_bytes(tier)
    if region_bytes is not None and region_bytes > room:
        raise MachineError(
            f"a region of {format_size(region_bytes)} does not fit in {tier}, "
            f"which has {format_size(room)} free",
            "give a smaller --region",
        )
    if is_paced(tier):
        return  # its probe maps arrays, and walks no region
    AccessProbe(tier, 2 * MIB, [min(os.sched_getaffinity(0))])


def is_paced(tier: str) -> bool:
    """Whether a tier is emulated by slowing another one down."""
    return parse_tier(tier)["profile"] != ""


def origin_of(*tiers: str, persistent: bool = False) -> tuple[Origin, str]:
    """Origin and note of a figure measured on these tiers.

    ``shm:`` is DRAM that stands in for persistent memory: its figures are emulated. What it costs
    to persist (``persistent``) is emulated on every tier of DRAM. Whatever involves a paced tier is
    emulated.
    """
    paced_as = [spec["profile"] for spec in map(parse_tier, tiers) if spec["profile"]]
    if paced_as:
        return Origin.EMULATED, "; ".join(map(told, dict.fromkeys(paced_as)))
    volatile = ("emulated", "nothing") if persistent else ("emulated",)
    if any(parse_tier(tier)["persists"] in volatile for tier in tiers):
        return Origin.EMULATED, "DRAM stands in for persistent memory"
    return Origin.MEASURED, ""
