"""Fractions of a site that are near, in eighths, and the interleaved tiers that have them.

A site of which k of 8 parts are near has a tier of both nodes with the weights k and 8 - k, in
lowest terms; all others are near or far as a whole (docs/formats/plan.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nearfar.errors import BadInputError
from nearfar.model.interleave import STEPS

#: A near and a far node.
Nodes = tuple[int, int]
_NODES = re.compile(r"(\d{1,2}):(\d{1,2})")


def weights_of(near_steps: int) -> tuple[int, int]:
    """Near and far parts in lowest terms."""
    common = math.gcd(near_steps, STEPS)
    return near_steps // common, (STEPS - near_steps) // common


def tier_of(near_steps: int) -> str:
    """The name of the tier of a site."""
    near, far = weights_of(near_steps)
    if near and far:
        return f"near{near}far{far}"
    return "near" if near else "far"


def tier_lines(steps: Iterable[int], nodes: Nodes) -> list[str]:
    """The statements of a plan that create the interleaved tiers of these fractions."""
    near, far = nodes
    mixed = {tier_of(k): weights_of(k) for k in steps if 0 < k < STEPS}
    return [
        f"tier {name} numa:{near}+{far},weights={weights[0]}:{weights[1]}"
        for name, weights in sorted(mixed.items())
    ]


def parse_nodes(text: str) -> Nodes:
    """Near and far node: ``0:1``. Raises BadInputError for anything else."""
    match = _NODES.fullmatch(text)
    if match is None or match[1] == match[2]:
        raise BadInputError(
            f"--nodes {text} is not a pair of nodes", "write the near and the far node, as 0:1"
        )
    return int(match[1]), int(match[2])


@dataclass(frozen=True)
class NearParts:
    """Near eighths by site number; sites without an entry are far. ``nodes``: of both memories, if
    a site is on both."""

    steps: Mapping[int, int] = field(default_factory=dict)
    nodes: Nodes = (0, 1)

    @staticmethod
    def whole(near: Iterable[int]) -> NearParts:
        """These sites near as a whole, all others far."""
        return NearParts(dict.fromkeys(near, STEPS))

    def tier(self, number: int) -> str:
        """The name of a site's tier."""
        return tier_of(self.steps.get(number, 0))

    def is_mixed(self, number: int) -> bool:
        """Whether a site is on both memories."""
        return 0 < self.steps.get(number, 0) < STEPS

    def tier_lines(self) -> list[str]:
        """The statements that create its interleaved tiers."""
        return tier_lines(self.steps.values(), self.nodes)
