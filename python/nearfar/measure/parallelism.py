"""Memory-level parallelism: the time of a load while one thread runs several pointer chases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar._native import LatencyProbe
from nearfar.measure.ceiling import check_latency
from nearfar.measure.grid import GridPlan
from nearfar.measure.session import Effort, Session
from nearfar.records.depth import ChainPoint, ParallelismResult
from nearfar.stats import median, ratio_of_pairs

if TYPE_CHECKING:
    from nearfar._native import Usage

CHAINS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16)
SAMPLE_NS = 2_000_000
WARM_STEPS = 1 << 18


@dataclass(frozen=True)
class ChainPlan(GridPlan[int]):
    """Concurrent chases (chains) over one region. Grid: number of chains; values: ns a load."""

    tier: str
    region_bytes: int
    cpu: int

    def open(self, seed: int) -> LatencyProbe:
        """Map the region and link its cache lines into one cycle in random order."""
        probe = LatencyProbe(self.tier, self.region_bytes, self.cpu)
        probe.prepare(self.region_bytes, 64, seed, WARM_STEPS)
        return probe

    def sample(self, probe: LatencyProbe, key: int, seed: int) -> tuple[float, Sequence[Usage]]:
        """Run ``key`` chains that start at evenly spaced nodes of the cycle."""
        sample = probe.sample_chains(key, SAMPLE_NS)
        latency_ns = check_latency(sample["latency_ns"], key, f"{key} chases on {self.tier}")
        return latency_ns, [sample]


def measure(
    session: Session, tier: str, region_bytes: int, cpu: int, effort: Effort
) -> ParallelismResult:
    """Measure all numbers of chains. The region should be larger than every cache."""
    plan = ChainPlan(CHAINS, tier, region_bytes, cpu)
    samples, _ = session.repeat(f"parallelism {tier}", "ns", plan, effort, label="{} chains".format)
    points = [
        ChainPoint(
            chains=chains,
            **session.figures(tier, latency_ns=median(samples.of(chains))),
        )
        for chains in sorted(samples.series)
    ]
    widest = min(points, key=lambda p: p.latency_ns).chains
    ratio = ratio_of_pairs(samples.series[points[0].chains], samples.series[widest])
    return ParallelismResult(
        tier=tier,
        region_bytes=region_bytes,
        points=points,
        **session.figures(tier, parallelism=ratio),
    )
