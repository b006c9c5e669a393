"""What kind of figure a tier gives."""

from __future__ import annotations

from collections.abc import Iterable

from nearfar._native import parse_tier, tier_capacity_bytes
from nearfar.records.shape import Origin


def check_tiers(tiers: Iterable[str]) -> None:
    """Refuse what is no tier, or not on this machine, before anything is measured."""
    for tier in tiers:
        tier_capacity_bytes(tier)


def origin_of(*tiers: str, persistent: bool = False) -> tuple[Origin, str]:
    """Origin and note of a figure measured on these tiers.

    ``shm:`` is DRAM that stands in for persistent memory: its figures are emulated. What it costs
    to persist (``persistent``) is emulated on every tier of DRAM.
    """
    volatile = ("shm", "dram", "numa") if persistent else ("shm",)
    if any(parse_tier(tier)["kind"] in volatile for tier in tiers):
        return Origin.EMULATED, "DRAM stands in for persistent memory"
    return Origin.MEASURED, ""
