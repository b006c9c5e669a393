"""Pointer chases of several kinds in one plan, for latencies of cache levels and page walks.

A chase walks a cycle of nodes; one round visits each node once. There are three kinds:

- Nodes of 64 bytes: a round visits each cache line once, in random order. A region that is larger
  than an LRU cache never hits this cache.
- Nodes of 32 bytes: a round visits each line twice, at random times. A region that is larger than a
  cache still hits it in part, as look-ups in a table do.
- Lines in address order, as a list whose nodes were allocated one after the other.

A thread may run several chases concurrently. They request lines at a higher rate, and so keep more
of their lines in a cache that other CPUs use, too.
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
#: Node sizes in bytes: a round visits each line once, or twice.
ONCE, REVISITED = 64, 32
#: In place of a node size: one node a line, visited in address order.
IN_TURN = 0
#: Number of times that an epoch samples all chases. A disturbance often lasts longer than all
#: consecutive samples of a chase; samples of different rounds are further apart.
ROUNDS: dict[Pages, int] = {"thp": 4, "4k": 2}
#: The shortest of REPEATS consecutive samples is used, because a disturbance only adds time.
SAMPLE_NS, REPEATS = 2_000_000, 3
#: Number of concurrent chases: about as many as a core overlaps look-ups in a hash map.
AT_ONCE = 3
#: Loads that fill the caches, in rounds over the region or over the lines of the last cache.
_WARM_ROUNDS = 1.5
#: Length of the walk that measures the pace of a chase.
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
    """Chases on one CPU, whose last cache has at most ``cache_bytes``. Values: ns a load.

    Each round adds one value to each chase.
    """

    chases: tuple[Chase, ...]
    cpu: int
    cache_bytes: int

    @property
    def grid(self) -> Sequence[Chase]:
        """All chases."""
        return self.chases

    def epoch(self, seed: int) -> Samples[Chase]:
        """Map fresh memory for each region: first on one page size, then on the other.

        The mappings of both page sizes would need twice the memory at the same time.
        """
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
        """None: no point can be dropped."""
        return None


def _warm(probe: LatencyProbe, place: Place, cache_bytes: int) -> None:
    """Fill the caches with lines of the region, by concurrent chases, which fill them fastest.

    Only nodes of 32 bytes require this. The other chases run over regions that exceed the caches,
    or over regions so small that the untimed start of a sample loads them.
    """
    _, region, node = place
    if node != REVISITED:
        return
    loads = _WARM_ROUNDS * min(region / node, cache_bytes / ONCE)
    step_ns = probe.sample(_STEP_NS)["latency_ns"]  # sample_chains derives its steps from it
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
