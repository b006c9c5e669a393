"""Checks of tiers and regions, and the origin of figures measured on a tier."""

from __future__ import annotations

import os
from collections.abc import Iterable

from nearfar._native import AccessProbe, parse_tier, tier_capacity_bytes
from nearfar.errors import BadInputError, MachineError
from nearfar.profiles import pacing
from nearfar.records.figures import Origin
from nearfar.units import KIB, MIB, format_size

#: Smaller than any last cache.
MIN_REGION = 64 * KIB


def check_tiers(tiers: Iterable[str]) -> None:
    """Raise an error if a tier is invalid or missing on this machine, before any measurement."""
    for tier in tiers:
        tier_capacity_bytes(tier)


def check_region(tier: str, region_bytes: int | None) -> None:
    """Raise an error for a region that is too small or too large, or a tier that cannot be mapped.

    Maps and touches 2 MiB of the tier, so that the error appears before any measurement, and once.
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
        return  # a paced tier has no latency curve: its probe maps arrays
    AccessProbe(tier, 2 * MIB, [min(os.sched_getaffinity(0))])


def is_paced(tier: str) -> bool:
    """Whether a tier is emulated by slowing another one down."""
    return parse_tier(tier)["profile"] != ""


def origin_of(*tiers: str, persistent: bool = False) -> tuple[Origin, str]:
    """Origin and note of a figure measured on these tiers.

    Figures are emulated on a paced tier, and on ``shm:``, where DRAM emulates persistent memory.
    Persistence costs (``persistent``) are emulated on every tier in DRAM.
    """
    paced_as = [spec["profile"] for spec in map(parse_tier, tiers) if spec["profile"]]
    if paced_as:
        return Origin.EMULATED, "; ".join(map(pacing.describe, dict.fromkeys(paced_as)))
    volatile = ("emulated", "nothing") if persistent else ("emulated",)
    if any(parse_tier(tier)["persists"] in volatile for tier in tiers):
        return Origin.EMULATED, "DRAM emulates persistent memory"
    return Origin.MEASURED, ""
