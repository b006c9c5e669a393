"""Plans of ``nearfar predict interleave``: tiers with weights for sites on both memories.

A site of which k of 8 parts are near has a tier of both nodes with the weights k and 8 - k, in
lowest terms; all others are near or far as a whole (docs/formats/plan.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nearfar import __version__
from nearfar.errors import BadInputError
from nearfar.place.promise import HeapPromise, Promise, RulePromise

_LINE_BYTES = 64
_NODES = re.compile(r"(\d{1,2}):(\d{1,2})")


@dataclass(frozen=True)
class PlannedSite:
    """A site. ``rule``: conditions of its rule; ``near_parts`` of ``parts`` are near."""

    name: str
    rule: str
    near_parts: int
    parts: int
    size_bytes: int
    read_bytes: float
    write_bytes: float

    def weights(self) -> tuple[int, int]:
        """Near and far parts in lowest terms."""
        common = math.gcd(self.near_parts, self.parts)
        return self.near_parts // common, (self.parts - self.near_parts) // common

    def tier(self) -> str:
        """The name of its tier."""
        near, far = self.weights()
        if near and far:
            return f"near{near}far{far}"
        return "near" if near else "far"


def parse_nodes(text: str) -> tuple[int, int]:
    """Near and far node: ``0:1``. Raises BadInputError for anything else."""
    match = _NODES.fullmatch(text)
    if match is None or match[1] == match[2]:
        raise BadInputError(
            f"--nodes {text} is not a pair of nodes", "write the near and the far node, as 0:1"
        )
    return int(match[1]), int(match[2])


def plan_text(
    sites: Sequence[PlannedSite],
    nodes: tuple[int, int],
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
    near, far = nodes
    tiers = {site.tier(): site.weights() for site in sites if all(site.weights())}
    return "\n".join(
        [
            "hmalloc-plan 1",
            f"# by nearfar predict interleave {__version__}",
            *_promise(sites, slowdowns).lines(),
            f"tier far numa:{far}",
            *(
                f"tier {name} numa:{near}+{far},weights={weights[0]}:{weights[1]}"
                for name, weights in sorted(tiers.items())
            ),
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
            near_bytes=sum(site.size_bytes * site.near_parts // site.parts for site in sites),
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
                reads=round(site.read_bytes / _LINE_BYTES),
                writes=round(site.write_bytes / _LINE_BYTES),
                stall_share=0.0,
                at=site.name,
            )
            for number, site in enumerate(sites, start=1)
        ],
    )
