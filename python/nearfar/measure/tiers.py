"""Checks of tiers and regions, and the origin of figures measured on a tier."""

from __future__ import annotations

import os
from collections.abc import Iterable

from nearfar._native import AccessProbe, parse_tier, tier_capacity_bytes
from nearfar.errors import BadInputError, MachineError
from nearfar.profiles import pacing
from nearfar.records.shape import Origin
from nearfar.units import KIB, MIB, format_size

#: Smaller than any last cache.
MIN_REGION = 64 * KIB


def check_tiers(tiers: Iterable[str]) -> None:
    """Reject invalid tiers, and tiers missing on this machine, before anything is measured."""
    for tier in tiers:
        tier_capacity_bytes(tier)


def check_region(tier: str, region_bytes: int | None) -> None:
    """Reject a region that is too small or does not fit, and a tier that cannot be mapped.

    Maps and touches one small piece, so that the error comes once and before any measurement.
    """
    if region_bytes is not None and region_bytes < MIN_REGION:
        raise BadInputError(
            f"a region of {format_size(region_bytes)} is too small to separate caches from memory",
            f"give at least {format_size(MIN_REGION)}",
        )
    room = tier_capacity_bytes(tier)
    if region_bytes is not None and region_bytes > room:
        raise MachineError(
            f"a region of {format_size(region_bytes)} does not fit in {tier}, "
            f"which has {format_size(room)} free",
            "give a smaller --region",
        )
    if is_paced(tier):
        return  # its probe maps arrays instead of a region
    AccessProbe(tier, 2 * MIB, [min(os.sched_getaffinity(0))])


def is_paced(tier: str) -> bool:
    """Whether a tier is emulated by slowing another one down."""
    return parse_tier(tier)["profile"] != ""


def origin_of(*tiers: str, persistent: bool = False) -> tuple[Origin, str]:
    """Origin and note of a figure measured on these tiers.

    ``shm:`` is DRAM that emulates persistent memory: its figures are emulated. Persistence cost
    (``persistent``) is emulated on every tier of DRAM. All figures on a paced tier are emulated.
    """
    paced_as = [spec["profile"] for spec in map(parse_tier, tiers) if spec["profile"]]
    if paced_as:
        return Origin.EMULATED, "; ".join(map(pacing.describe, dict.fromkeys(paced_as)))
    volatile = ("emulated", "nothing") if persistent else ("emulated",)
    if any(parse_tier(tier)["persists"] in volatile for tier in tiers):
        return Origin.EMULATED, "DRAM emulates persistent memory"
    return Origin.MEASURED, ""
