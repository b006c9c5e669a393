"""Plans of ``nearfar predict interleave``: tiers with weights for sites on both memories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nearfar import __version__
from nearfar.errors import BadInputError
from nearfar.model.interleave import STEPS
from nearfar.place.fractions import Nodes, tier_lines, tier_of
from nearfar.place.promise import HeapPromise, Promise, RulePromise
from nearfar.units import LINE_BYTES


@dataclass(frozen=True)
class PlannedSite:
    """A site. ``rule``: conditions of its rule; ``near_steps`` eighths are near."""

    name: str
    rule: str
    near_steps: int
    size_bytes: int
    read_bytes: float
    write_bytes: float

    def tier(self) -> str:
        """The name of its tier."""
        return tier_of(self.near_steps)


def plan_text(
    sites: Sequence[PlannedSite],
    nodes: Nodes,
    slowdowns: tuple[float, float],
) -> str:
    """The plan. ``slowdowns``: with the plan and with all sites far, against all near.

    Raises BadInputError for a site without a rule.
    """
    for site in sites:
        if not site.rule or "\n" in site.rule:
            raise BadInputError(
                f"site {site.name} has no rule, so that a plan cannot name it",
                "add a column rule with the conditions of each site, such as size=1MiB.. "
                "(docs/formats/plan.md)",
            )
    return "\n".join(
        [
            "hmalloc-plan 1",
            f"# by nearfar predict interleave {__version__}",
            *_promise(sites, slowdowns).lines(),
            f"tier far numa:{nodes[1]}",
            *tier_lines((site.near_steps for site in sites), nodes),
            *(f"rule {site.tier()} {site.rule}" for site in sites),
            "",
        ]
    )


def _promise(sites: Sequence[PlannedSite], slowdowns: tuple[float, float]) -> Promise:
    heap = [site for site in sites if not re.search(r"(^|\s)(map|globals)=", site.rule)]
    return Promise(
        heap=HeapPromise(
            allocated_bytes=sum(site.size_bytes for site in heap),
            peak_bytes=sum(site.size_bytes for site in heap),
            near_bytes=sum(site.size_bytes * site.near_steps // STEPS for site in sites),
            slowdown=slowdowns[0],
            slowdown_all_far=slowdowns[1],
        ),
        rules=[
            RulePromise(
                rule=number,
                tier=site.tier(),
                allocations=0,
                allocated_bytes=site.size_bytes,
                peak_bytes=site.size_bytes,
                reads=round(site.read_bytes / LINE_BYTES),
                writes=round(site.write_bytes / LINE_BYTES),
                stall_share=0.0,
                at=site.name,
            )
            for number, site in enumerate(sites, start=1)
        ],
    )
