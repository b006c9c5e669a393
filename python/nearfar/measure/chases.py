"""Pointer chases of several kinds in one plan, for latencies of cache levels and page walks.

Nodes of 64 bytes form a cycle that visits each line once a round. Nodes of 32 bytes lie two to a
line, so that a round visits each line twice at random times, like look-ups in a table; an LRU cache
holds no part of a larger 64-byte cycle. Several concurrent chases request lines more often, and
hold more of a cache that neighbors share. A chase may also visit the lines of its region in
address order, like a list in allocation order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from nearfar._native import LatencyProbe
from nearfar.measure.ceiling import check_latency
from nearfar.measure.session import Samples
from nearfar.units import MIB

Pages = Literal["thp", "4k"]
#: Bytes of a node: one node a line, or two.
ONCE, REVISITED = 64, 32
#: Instead of a node size: one node a line, in address order.
IN_TURN = 0
#: Rounds over all chases of an epoch: a disturbance lasts longer than the samples of a chase.
ROUNDS: dict[Pages, int] = {"thp": 4, "4k": 2}
#: Of consecutive samples the shortest counts: disturbances only add.
SAMPLE_NS, REPEATS = 2_000_000, 3
#: Concurrent chases: about as many gets as a core overlaps.
AT_ONCE = 3
#: Rounds over a region, and over the lines of the last cache, that fill the caches.
_WARM_ROUNDS = 1.5
_STEP_NS = 200_000
#: Nodes walked after linking, before the first round.
_FIRST_STEPS = 1 << 12


class Chase(NamedTuple):
    """A number of concurrent chases over one region of ordinary memory."""

    pages: Pages
    region_bytes: int
    node_bytes: int
    chains: int

    def __str__(self) -> str:
        kind = f"nodes of {self.node_bytes} B" if self.node_bytes else "lines in turn"
        nodes = f"{kind} on {self.pages}"
        return f"{self.chains} over {self.region_bytes} B, {nodes}"


Place = tuple[Pages, int, int]


@dataclass(frozen=True)
class ChasePlan:
    """Chases on one CPU, next to a last cache of at most so many bytes. Values: ns a load, one a
    round."""

    chases: tuple[Chase, ...]
    cpu: int
    cache_bytes: int

    @property
    def grid(self) -> Sequence[Chase]:
        """All chases."""
        return self.chases

    def epoch(self, seed: int) -> Samples[Chase]:
        """Fresh memory for each region; one page size after the other, to use less of it."""
        samples: Samples[Chase] = Samples()
        order = random.Random(seed)
        for pages, rounds in ROUNDS.items():
            places: dict[Place, list[Chase]] = {}
            for chase in self.chases:
                if chase.pages == pages:
                    places.setdefault(chase[:3], []).append(chase)
            probes = {place: self._linked(place, seed) for place in places}
            for _ in range(rounds):
                for place in order.sample(list(places), len(places)):
                    _warm(probes[place], place, self.cache_bytes)
                    for chase in places[place]:
                        _sample(probes[place], chase, samples)
        return samples

    def _linked(self, place: Place, seed: int) -> LatencyProbe:
        pages, region, node = place
        whole = -(-region // (2 * MIB)) * 2 * MIB  # of huge pages
        probe = LatencyProbe(f"dram,pages={pages}", whole, self.cpu)
        probe.prepare(region, node or region, seed, _FIRST_STEPS)
        return probe

    def smaller(self) -> ChasePlan | None:
        """Nothing can be dropped."""
        return None


def _warm(probe: LatencyProbe, place: Place, cache_bytes: int) -> None:
    """Fill the caches with the region; concurrent chases do so fastest, also next to neighbors.

    Lines that are visited once a round, or in address order, need none: the region exceeds the
    caches, or is so small that the untimed start of a sample fills them.
    """
    _, region, node = place
    if node != REVISITED:
        return
    loads = _WARM_ROUNDS * min(region / node, cache_bytes / ONCE)
    step_ns = probe.sample(_STEP_NS)["latency_ns"]  # in which chains count their time
    probe.sample_chains(AT_ONCE, int(loads / AT_ONCE * step_ns))


def _sample(probe: LatencyProbe, chase: Chase, samples: Samples[Chase]) -> None:
    taken = [
        probe.sample(SAMPLE_NS)
        if chase.chains == 1
        else probe.sample_chains(chase.chains, SAMPLE_NS)
        for _ in range(REPEATS)
    ]
    least = min(sample["latency_ns"] for sample in taken)
    samples.add(chase, check_latency(least, chase.chains, f"a chase, {chase}"), taken)
