"""Latency of a line by block size: blocks in random order, lines of a block in address order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar._native import LatencyProbe
from nearfar.measure.grid import GridPlan
from nearfar.measure.session import Effort, Session
from nearfar.records.depth import BlockPoint, BlocksResult
from nearfar.stats import median
from nearfar.units import format_size

if TYPE_CHECKING:
    from nearfar._native import Usage

BLOCKS = (64, 128, 256, 512, 1024, 2048, 4096)
SAMPLE_NS = 2_000_000
WARM_STEPS = 1 << 17


@dataclass(frozen=True)
class BlockPlan(GridPlan[int]):
    """Block sizes on one region. Values: ns per line."""

    tier: str
    region_bytes: int
    cpu: int

    def open(self, seed: int) -> LatencyProbe:
        """Map the region; each point links its own cycle."""
        return LatencyProbe(self.tier, self.region_bytes, self.cpu)

    def sample(self, probe: LatencyProbe, key: int, seed: int) -> tuple[float, Sequence[Usage]]:
        """Time a cycle of blocks of that size."""
        probe.prepare(self.region_bytes, key, seed, WARM_STEPS)
        sample = probe.sample(SAMPLE_NS)
        return sample["latency_ns"], [sample]


def measure(
    session: Session, tier: str, region_bytes: int, cpu: int, effort: Effort
) -> BlocksResult:
    """Measure all block sizes; the region should be larger than every cache."""
    plan = BlockPlan(BLOCKS, tier, region_bytes, cpu)
    samples, _ = session.repeat(f"blocks {tier}", "ns", plan, effort, label=format_size)
    points = [
        BlockPoint(
            block_bytes=block,
            **session.figures(tier, latency_ns=median(samples.of(block))),
        )
        for block in sorted(samples.series)
    ]
    return BlocksResult(tier=tier, region_bytes=region_bytes, points=points)
