"""The access unit of a medium, derived from the cost of stores of different block sizes.

A medium with an access unit of U bytes writes all U for a smaller block: stores of 64 B then cost
U / block times as much each. The cost is constant from the block size that equals the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MIN_BLOCKS = 3
#: Blocks whose stores cost up to this factor of the cheapest count as equal.
SAME_COST = 1.1
#: Write buffers hide the unit in small regions: only this fraction of the regions counts.
LARGE_REGIONS = 0.25


@dataclass(frozen=True)
class BlockCost:
    """Nanoseconds of each 64 B stored in blocks of a size over a region."""

    block_bytes: int
    region_bytes: int
    ntwrite_ns: float


@dataclass(frozen=True)
class AccessUnit:
    """The unit in bytes, between the last block size with amplification and the first without."""

    unit_bytes: int
    low: int
    high: int
    blocks: int


def access_unit(costs: Sequence[BlockCost]) -> AccessUnit | None:
    """The smallest block from which all larger blocks cost the same.

    None if undetermined: fewer than three blocks, no amplification at the smallest block, or only
    the largest block is cheap, so that the cost may fall further.
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
