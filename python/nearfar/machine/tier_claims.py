"""Claims of kernel and firmware on the speed of memory nodes, besides HMAT and distances.

Memory tiers decide between which nodes the kernel demotes cold pages; weights how it interleaves.
Both follow from the firmware's figures, so that wrong ones misplace pages without any error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nearfar.errors import BadInputError
from nearfar.machine.interleave_weights import WEIGHTS
from nearfar.machine.root import Root
from nearfar.units import parse_cpus

TIERING = "sys/devices/virtual/memory_tiering"
DEMOTION = "sys/kernel/mm/numa/demotion_enabled"


@dataclass(frozen=True)
class TierClaims:
    """``tiers``: nodes by number of the memory tier, lower being faster; ``weights``: by node;
    ``demotion``: whether cold pages are demoted, None if the kernel cannot."""

    tiers: dict[int, list[int]]
    weights: dict[int, int]
    demotion: bool | None

    def tier_of(self, node: int) -> int | None:
        """The number of the memory tier that has a node."""
        return next((number for number, nodes in self.tiers.items() if node in nodes), None)


def read_tier_claims(root: Root) -> TierClaims:
    """Read what this machine, or a described one, has of them."""
    tiers = {}
    for name in root.names(TIERING):
        match = re.fullmatch(r"memory_tier(\d+)", name)
        if match and (nodes := _nodes(root.text(f"{TIERING}/{name}/nodelist"))):
            tiers[int(match[1])] = nodes
    weights = {
        int(name.removeprefix("node")): weight
        for name in root.names(WEIGHTS)
        if re.fullmatch(r"node\d+", name) and (weight := root.number(f"{WEIGHTS}/{name}"))
    }
    demotion = root.text(DEMOTION)
    return TierClaims(
        dict(sorted(tiers.items())),
        weights,
        None if demotion is None else demotion in ("1", "true"),
    )


def _nodes(text: str | None) -> list[int]:
    try:
        return parse_cpus(text) if text else []
    except BadInputError:
        return []
