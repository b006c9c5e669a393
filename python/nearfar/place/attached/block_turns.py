"""Interleaved tiers of a running process: blocks of addresses on their nodes in turns.

A block is 2 MiB, so that huge pages stay whole: the kernel moves a huge page as soon as one of its
small pages is moved. Which node a block belongs to follows from its address alone, so that regions
may grow, shrink and merge without pages that move back and forth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from nearfar.place.attached.node_tiers import NodeTier

BLOCK = 2 << 20


def single_node_parts(start: int, end: int, tier: NodeTier) -> Iterator[tuple[int, int, NodeTier]]:
    """Parts of a range, each with the tier or, of an interleaved tier, with the node of its blocks;
    adjacent blocks of one node are one part."""
    if not tier.weights:
        yield start, end, tier
        return
    turn = _turn(tuple(sorted(tier.weights.items())))
    at = start
    while at < end:
        node = turn[at // BLOCK % len(turn)]
        stop = at
        while stop < end and turn[stop // BLOCK % len(turn)] == node:
            stop = (stop // BLOCK + 1) * BLOCK
        yield at, min(stop, end), replace(tier, nodes=frozenset({node}))
        at = min(stop, end)


@lru_cache(maxsize=64)
def _turn(weights: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """The nodes of the blocks of one turn, each spread as evenly as possible."""
    total = sum(weight for _, weight in weights)
    given: Mapping[int, int] = dict(weights)
    used = dict.fromkeys(given, 0)
    order = []
    for place in range(1, total + 1):
        node = max(given, key=lambda n: given[n] * place - used[n] * total)
        used[node] += 1
        order.append(node)
    return tuple(order)
