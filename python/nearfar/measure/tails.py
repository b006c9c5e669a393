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
    """Percentiles of single loads on one region. Grid: percentiles as fractions; values: ns.

    Companions: the overhead of the timer in ns, which is already subtracted from the values.
    """

    tier: str
    region_bytes: int
    cpu: int
    grid: Sequence[float] = (0.5, 0.9, 0.99, 0.999, 0.9999)

    def epoch(self, seed: int) -> Samples[float]:
        """Time one series of loads, and read all percentiles from it."""
        probe = LatencyProbe(self.tier, self.region_bytes, self.cpu)
        probe.prepare(self.region_bytes, 64, seed, WARM_STEPS)
        timed = probe.time_each(LOADS)
        samples: Samples[float] = Samples(usages=[timed])
        for share in self.grid:
            samples.series[share] = [timed["percentiles_ns"][share]]
            samples.companions[share] = [timed["timer_ns"]]
        return samples

    def smaller(self) -> TailPlan | None:
        """None: all percentiles come from one series, so dropping some saves no time."""
        return None


def measure(
    session: Session, tier: str, region_bytes: int, cpu: int, effort: Effort
) -> TailsResult:
    """Measure the percentiles; each is the median over epochs."""
    plan = TailPlan(tier, region_bytes, cpu)
    # Interrupts and other virtual machines determine the high percentiles, also on an idle machine.
    # Their spread is therefore not evidence of a disturbance.
    samples, _ = session.repeat(f"tails {tier}", "ns", plan, effort, judge_spread=False)
    points = [
        TailPoint(
            share=share,
            **session.figures(tier, latency_ns=median(values)),
        )
        for share, values in samples.series.items()
    ]
    timer = median(samples.companions[plan.grid[0]])
    return TailsResult(
        tier=tier,
        region_bytes=region_bytes,
        points=points,
        **session.figures(tier, timer_ns=timer),
    )
