"""Latency under load: a pointer chase concurrent with paced traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from nearfar._native import LoadedProbe
from nearfar.measure.grid import GridPlan
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.depth import LoadedPoint, LoadedResult
from nearfar.stats import median
from nearfar.units import MIB

SAMPLE_NS = 10_000_000
#: Minimum size for each traffic thread. By default all of them together traverse four times the
#: last cache, so that the traffic reaches memory.
MIN_TRAFFIC_BYTES = 64 * MIB
#: Unpaced runs that find the highest bandwidth of a mix.
TRIES = 5
#: Mixes of the traffic: reads and writes.
MIXES = ((1, 0), (1, 1))
#: Offered bandwidths as fractions of the highest one. Infinity: not paced.
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, math.inf)


class Load(NamedTuple):
    """One point of the grid: a mix of traffic, and the bandwidth offered by each traffic thread."""

    reads: int
    writes: int
    offered_bytes_per_s: float

    def __str__(self) -> str:
        return f"{self.reads}:{self.writes} at {self.offered_bytes_per_s / 1e9:.1f} GB/s a thread"


@dataclass(frozen=True)
class LoadedPlan(GridPlan[Load]):
    """A chase on one tier while other threads cause traffic. Values: ns a load of the chase.

    Companions: the achieved bandwidth in bytes/s, traffic and chase together.
    """

    tier: str
    region_bytes: int
    traffic_bytes: int
    cpus: tuple[int, ...]

    def open(self, seed: int) -> LoadedProbe:
        """Map memory for a chase on the first CPU and for traffic on all other CPUs."""
        return LoadedProbe(
            self.tier,
            self.region_bytes,
            self.traffic_bytes,
            self.cpus[0],
            list(self.cpus[1:]),
            seed,
        )

    def epoch(self, seed: int) -> Samples[Load]:
        """Measure latency and achieved bandwidth of each point, in random order."""
        probe = self.open(seed)
        samples: Samples[Load] = Samples()
        for load in self.shuffled(seed):
            run = probe.run(
                "sequential", load.reads, load.writes, load.offered_bytes_per_s, SAMPLE_NS, seed
            )
            samples.add(load, run["latency_ns"], run["members"])
            achieved = run["traffic_bytes_per_s"] + run["chaser_bytes_per_s"]
            samples.companions.setdefault(load, []).append(achieved)
        return samples

    def smaller(self) -> Self | None:
        """Keep every other point of each mix, including the idle and the unpaced one."""
        loads = [load for load in self.grid if load[:2] == self.grid[0][:2]]
        if len(loads) <= 4:
            return None
        kept = {*[load.offered_bytes_per_s for load in loads][::2], math.inf}
        return replace(self, grid=[x for x in self.grid if x.offered_bytes_per_s in kept])


def measure(
    session: Session,
    tier: str,
    region_bytes: int,
    cpus: Sequence[int],
    last_cache: int,
    effort: Effort,
) -> LoadedResult:
    """Measure the curve of each mix. Requires two CPUs (the core raises MachineError otherwise)."""
    share = 4 * last_cache // max(len(cpus) - 1, 1) // 4096 * 4096
    empty = LoadedPlan((), tier, region_bytes, max(share, MIN_TRAFFIC_BYTES), tuple(cpus))
    plan = replace(empty, grid=_grid(empty, session.seed))
    samples, _ = session.repeat(f"loaded latency {tier}", "ns", plan, effort)
    points = [
        LoadedPoint(
            reads=load.reads,
            writes=load.writes,
            offered_bytes_per_s=_finite(load.offered_bytes_per_s * (len(cpus) - 1)),
            **session.figures(
                tier,
                latency_ns=median(samples.of(load)),
                bandwidth_bytes_per_s=median(samples.companions[load]),
            ),
        )
        for load in sorted(samples.series)
    ]
    return LoadedResult(tier=tier, chaser_cpu=cpus[0], traffic_cpus=list(cpus[1:]), points=points)


def _grid(plan: LoadedPlan, seed: int) -> list[Load]:
    """The points of each mix: fractions of the highest bandwidth that it reaches unpaced."""
    probe = plan.open(seed)
    grid = []
    for reads, writes in MIXES:
        tries = [
            probe.run("sequential", reads, writes, math.inf, SAMPLE_NS, seed)["traffic_bytes_per_s"]
            for _ in range(TRIES)
        ]
        most = max(tries) / (len(plan.cpus) - 1)  # disturbances only slow traffic down
        # The idle latency does not depend on the mix, so only the first mix has this point.
        shares = SHARES if (reads, writes) == MIXES[0] else SHARES[1:]
        grid += [Load(reads, writes, share * most) for share in shares]
    return grid


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
