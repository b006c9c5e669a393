"""All memory of a program on one tier: heap, mappings and globals, as far as a plan can place them.

Other tiers than NUMA nodes hold blocks of the heap only. Stacks, code, the page cache and globals
of libraries stay where the kernel puts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nearfar.place.preload import Placement

_PLAN = """hmalloc-plan 1
default {tier}
rule {tier} map=anonymous
rule {tier} map=heap
rule {tier} map=file:zero
rule {tier} globals=name:
"""


def whole_program_on(tier: str, tiers: Mapping[str, str], folder: Path) -> Placement:
    """All memory on one of the tiers; the plan, if there is one, is written into ``folder``."""
    if not places_mappings(tiers[tier]):
        return Placement(None, {"near": tiers["near"], tier: tiers[tier]})
    plan = folder / f"all-{tier}.plan"
    plan.write_text(_PLAN.format(tier=tier))
    return Placement(plan, dict(tiers))


def places_mappings(specification: str) -> bool:
    """Whether a tier is memory of nodes, on which mappings and globals can be placed."""
    return specification.startswith("numa:")
