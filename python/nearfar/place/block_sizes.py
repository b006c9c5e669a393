"""Blocks of one call divided by size, where the stalls of the sizes are not equally dense.

A wrapper of malloc in code without frame pointers hides its callers, which often differ in the
sizes that they allocate: pages of a cache apart from small objects. The allocation log has a site
for each class of sizes (native/alloclog/format.hpp). A block that realloc() has resized is in the
class of its first size, by which libhmalloc has placed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nearfar.model.blocks import equal_blocks
from nearfar.place.mapping_parts import MAX_PARTS, MIN_BYTES, MIN_SAMPLES
from nearfar.place.sites import MIN_PLACED_BYTES, BlockSizes


@dataclass(frozen=True)
class SizeClass:
    """What was seen of the blocks of adjacent classes of sizes, from the least size on."""

    least_bytes: int
    samples: int
    live_bytes: int


def parts_by_size(classes: Sequence[SizeClass]) -> list[BlockSizes]:
    """Ranges that cover all sizes; one if there is nothing to divide. ``classes``: in order."""
    import numpy as np

    bins = _worth_a_rule(classes)
    samples = np.array([each.samples for each in bins], np.float64)
    live = np.array([each.live_bytes for each in bins], np.float64)
    if len(bins) < 2 or samples.sum() < MIN_SAMPLES or live.sum() < MIN_BYTES:
        return [(0, None)]
    blocks = equal_blocks(samples, live, MAX_PARTS)
    begins = [0, *(bins[first].least_bytes for first, _ in blocks[1:])]
    ends: list[int | None] = [*(begin - 1 for begin in begins[1:]), None]
    return list(zip(begins, ends, strict=True))


def _worth_a_rule(classes: Iterable[SizeClass]) -> list[SizeClass]:
    """The classes, joined to the one before until each has the memory for which rules are made."""
    bins: list[SizeClass] = []
    for each in classes:
        if bins and min(bins[-1].live_bytes, each.live_bytes) < MIN_PLACED_BYTES:
            last = bins.pop()
            samples, live_bytes = last.samples + each.samples, last.live_bytes + each.live_bytes
            bins.append(SizeClass(last.least_bytes, samples, live_bytes))
        else:
            bins.append(each)
    return bins


def part_of_size(parts: Sequence[BlockSizes], least_bytes: int) -> int:
    """The number of the part of a class."""
    return sum(least <= least_bytes for least, _ in parts) - 1
