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
from itertools import groupby
from typing import Literal, NamedTuple

from nearfar._native import LatencyProbe
from nearfar.measure.ceiling import check_latency
from nearfar.measure.session import Samples

Pages = Literal["thp", "4k"]
#: Bytes of a node: one node a line, or two.
ONCE, REVISITED = 64, 32
#: Instead of a node size: one node a line, in address order.
IN_TURN = 0
SAMPLE_NS, REPEATS = 2_000_000, 3
#: How long concurrent chases run before timing, to fill their part of the caches.
SETTLE_NS = 10_000_000
#: Loads walked before a region is timed, at most.
WARM_STEPS = 1 << 18


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


@dataclass(frozen=True)
class ChasePlan:
    """Chases on one CPU. Values: ns a load."""

    chases: tuple[Chase, ...]
    cpu: int

    @property
    def grid(self) -> Sequence[Chase]:
        """All chases."""
        return self.chases

    def epoch(self, seed: int) -> Samples[Chase]:
        """Fresh memory of each page size; both use the same random order of regions."""
        samples: Samples[Chase] = Samples()
        regions = sorted({chase.region_bytes for chase in self.chases})
        order = {r: i for i, r in enumerate(random.Random(seed).sample(regions, len(regions)))}
        probes = {
            pages: LatencyProbe(
                f"dram,pages={pages}",
                max(c.region_bytes for c in self.chases if c.pages == pages),
                self.cpu,
            )
            for pages in {chase.pages for chase in self.chases}
        }
        wanted = sorted(self.chases, key=lambda c: (order[c.region_bytes], c))
        for (pages, region, node), chases in groupby(wanted, key=lambda c: c[:3]):
            probes[pages].prepare(region, node or region, seed, WARM_STEPS)
            for chase in chases:
                _sample(probes[pages], chase, samples)
        return samples

    def smaller(self) -> ChasePlan | None:
        """Nothing can be dropped."""
        return None


def _sample(probe: LatencyProbe, chase: Chase, samples: Samples[Chase]) -> None:
    if chase.chains > 1:
        probe.sample_chains(chase.chains, SETTLE_NS)
    for _ in range(REPEATS):
        sample = (
            probe.sample(SAMPLE_NS)
            if chase.chains == 1
            else probe.sample_chains(chase.chains, SAMPLE_NS)
        )
        ns = check_latency(sample["latency_ns"], chase.chains, f"a chase, {chase}")
        samples.add(chase, ns, [sample])
