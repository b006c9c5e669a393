"""The access unit of a medium, derived from the cost of stores of different block sizes.

A medium with an access unit of U bytes writes U bytes even for a smaller block. Each 64 B of such a
block then costs U / block times as much. From block size U on, the cost is constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MIN_BLOCKS = 3
#: Block sizes count as equal if their costs are within this factor of the lowest cost.
SAME_COST = 1.1
#: Only this fraction of the regions is used, the largest ones. In small regions, write buffers hide
#: the effect of the unit.
LARGE_REGIONS = 0.25


@dataclass(frozen=True)
class BlockCost:
    """Time to store 64 B, in ns, when a region is written in blocks of one size."""

    block_bytes: int
    region_bytes: int
    ntwrite_ns: float


@dataclass(frozen=True)
class AccessUnit:
    """The unit in bytes. It is larger than ``low``, the last block size with a higher cost."""

    unit_bytes: int
    low: int
    high: int
    blocks: int


def access_unit(costs: Sequence[BlockCost]) -> AccessUnit | None:
    """The smallest block size from which on the cost is constant.

    None if it cannot be determined: there are fewer than three block sizes; or the smallest one
    costs no more than others; or only the largest one is cheap, so that larger ones might be
    cheaper.
    """
    blocks = sorted({cost.block_bytes for cost in costs})
    if len(blocks) < MIN_BLOCKS:
        return None
    levels = [_level([c for c in costs if c.block_bytes == block]) for block in blocks]
    most = min(levels) * SAME_COST
    dear = [index for index, level in enumerate(levels) if level > most]
    first = max(dear, default=-1) + 1
    if first == 0 or first >= len(blocks) - 1:
        return None
    return AccessUnit(blocks[first], blocks[first - 1], blocks[first], len(blocks))


def _level(costs: Sequence[BlockCost]) -> float:
    """Median cost over the largest regions."""
    regions = sorted({cost.region_bytes for cost in costs})
    least = regions[-max(1, int(len(regions) * LARGE_REGIONS))]
    return median(cost.ntwrite_ns for cost in costs if cost.region_bytes >= least)
