"""Pointer chases of several shapes in one plan: what a host's levels, caches and page walks cost.

Nodes of 64 bytes make a cycle that comes by each line once a round. Nodes of 32 bytes lie two to a
line, so that a round comes by each line twice, at random times: like look-ups in a table, and
unlike a cycle, of which a cache that drives the oldest line out never holds a part. Several chases
at once ask for lines more often, and hold more of a cache that neighbours share. A chase may also
come by the lines of its region in turn, as by a list in the order of its allocation.
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
#: Bytes of a node: one a line, or two.
ONCE, REVISITED = 64, 32
#: In the place of these: one node a line, all of them in turn.
IN_TURN = 0
SAMPLE_NS, REPEATS = 2_000_000, 3
#: What chases at once run before they are timed, to have their share of the caches.
SETTLE_NS = 10_000_000
#: Loads walked before a region is timed, at most.
WARM_STEPS = 1 << 18


class Chase(NamedTuple):
    """So many chases at once over one region of ordinary memory."""

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
    """Chases on one processor. Values: ns a load."""

    chases: tuple[Chase, ...]
    cpu: int

    @property
    def grid(self) -> Sequence[Chase]:
        """All chases."""
        return self.chases

    def epoch(self, seed: int) -> Samples[Chase]:
        """Fresh memory of each page size; regions in a random order, which both share."""
        samples: Samples[Chase] = Samples()
        regions = sorted({chase.region_bytes for chase in self.chases})
        order = {r: i for i, r in enumerate(random.Random(seed).sample(regions, len(regions)))}
        probes = {
            pages: LatencyProbe(
                f"dram,pages={pages}",
                max(c.region_bytes for c in self.chases if c.pages == pages), self.cpu,
            )
            for pages in {chase.pages for chase in self.chases}
        }  # fmt: skip
        wanted = sorted(self.chases, key=lambda c: (order[c.region_bytes], c))
        for (pages, region, node), chases in groupby(wanted, key=lambda c: c[:3]):
            probes[pages].prepare(region, node or region, seed, WARM_STEPS)
            for chase in chases:
                _sample(probes[pages], chase, samples)
        return samples

    def smaller(self) -> ChasePlan | None:
        """There is nothing to give up."""
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
