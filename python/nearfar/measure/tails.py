"""Single-access latency distribution: loads timed one at a time, by percentile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar._native import LatencyProbe
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.depth import TailPoint, TailsResult
from nearfar.stats import median

LOADS = 200_000
WARM_STEPS = 1 << 17


@dataclass(frozen=True)
class TailPlan:
    """Percentiles of one region. Grid: fractions; values: ns; counts: overhead of the timer, ns."""

    tier: str
    region_bytes: int
    cpu: int
    grid: Sequence[float] = (0.5, 0.9, 0.99, 0.999, 0.9999)

    def epoch(self, seed: int) -> Samples[float]:
        """All percentiles of one series of loads."""
        probe = LatencyProbe(self.tier, self.region_bytes, self.cpu)
        probe.prepare(self.region_bytes, 64, seed, WARM_STEPS)
        timed = probe.time_each(LOADS)
        samples: Samples[float] = Samples(usages=[timed])
        for share in self.grid:
            samples.series[share] = [timed["percentiles_ns"][share]]
            samples.counts[share] = [timed["timer_ns"]]
        return samples

    def smaller(self) -> TailPlan | None:
        """One series gives all percentiles: nothing can be dropped."""
        return None


def measure(
    session: Session, tier: str, region_bytes: int, cpu: int, effort: Effort
) -> TailsResult:
    """Measure the percentiles; each is the median over epochs."""
    plan = TailPlan(tier, region_bytes, cpu)
    # Neighbors and interrupts determine the far tail, so its spread is not evidence of noise.
    samples, _ = session.repeat(f"tails {tier}", "ns", plan, effort, judge_spread=False)
    points = [
        TailPoint(
            share=share,
            **session.figures(tier, latency_ns=median(values)),
        )
        for share, values in samples.series.items()
    ]
    timer = median(samples.counts[plan.grid[0]])
    return TailsResult(
        tier=tier,
        region_bytes=region_bytes,
        points=points,
        **session.figures(tier, timer_ns=timer),
    )
