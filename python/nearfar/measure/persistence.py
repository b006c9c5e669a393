"""Persistence cost by instruction, block size and number of lines per fence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nearfar._native import PersistenceProbe, parse_tier, persist_instructions
from nearfar.measure.grid import GridPlan
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.depth import OverwriteResult, PersistCost, PersistenceResult, PersistPoint
from nearfar.stats import median
from nearfar.units import KIB, MIB

if TYPE_CHECKING:
    from nearfar._native import Usage

REGION_BYTES = 64 * MIB
SAMPLE_NS = 2_000_000
MSYNC_SAMPLE_NS = 50_000_000
LINES = (1, 2, 4, 8, 16, 32)
BLOCKS = (64, 256, 1 * KIB, 4 * KIB)
OVERWRITES = 100_000
OVERWRITTEN_BYTES = 256


class Persist(NamedTuple):
    """One point of the grid."""

    how: str
    block_bytes: int
    blocks_per_fence: int

    def __str__(self) -> str:
        return f"{self.how}, {self.blocks_per_fence} x {self.block_bytes} B a fence"


def points_for(tier: str) -> list[Persist]:
    """The flush instructions of this CPU; on a file tier, where they do not persist data, msync."""
    if parse_tier(tier)["persists"] == "msync":
        return [Persist("msync", block, 1) for block in BLOCKS]
    lines = [Persist(how, 64, n) for how in persist_instructions() for n in LINES]
    sizes = [Persist(how, block, 1) for how in persist_instructions() for block in BLOCKS[1:]]
    return [*lines, *sizes]


@dataclass(frozen=True)
class PersistPlan(GridPlan[Persist]):
    """Stores, flushes and fences on one tier. Values: ns per fence, with its blocks."""

    tier: str
    cpu: int

    def open(self, seed: int) -> PersistenceProbe:
        """Map a region that is larger than most caches; flushed lines always go to memory."""
        return PersistenceProbe(self.tier, REGION_BYTES, self.cpu)

    def sample(
        self, probe: PersistenceProbe, key: Persist, seed: int
    ) -> tuple[float, Sequence[Usage]]:
        """Store random blocks. A wait for a device is not evidence of a disturbance."""
        if key.how == "msync":
            return probe.sample_msync(key.block_bytes, MSYNC_SAMPLE_NS)["fence_ns"], []
        sample = probe.sample(key.how, key.block_bytes, key.blocks_per_fence, SAMPLE_NS)
        return sample["fence_ns"], [sample]


@dataclass(frozen=True)
class OverwritePlan:
    """Repeated stores to one block. Grid: the figures, which all come from one series of stores."""

    tier: str
    cpu: int
    how: str
    grid: Sequence[str] = ("latency_ns", "stall_ns", "writes_between", "stalls")

    def epoch(self, seed: int) -> Samples[str]:
        """Time one series of stores."""
        probe = PersistenceProbe(self.tier, MIB, self.cpu)
        run = probe.overwrite(self.how, OVERWRITTEN_BYTES, OVERWRITES)
        estimates = {
            "latency_ns": run["percentiles_ns"][0.5],
            "stall_ns": run["stall_ns"],
            "writes_between": run["writes_between"],
            "stalls": float(run["stalls"]),
        }
        return Samples(series={key: [estimates[key]] for key in self.grid}, usages=[run])

    def smaller(self) -> OverwritePlan | None:
        """None: no point can be dropped."""
        return None


def measure(session: Session, tier: str, cpu: int, effort: Effort) -> PersistenceResult:
    """Measure all points of a tier, then repeated stores to one block (not on a file tier)."""
    plan = PersistPlan(points_for(tier), tier, cpu)
    waits = parse_tier(tier)["persists"] == "msync"
    samples, _ = session.repeat(f"persistence {tier}", "ns", plan, effort, kernel_works=waits)
    points = [
        PersistPoint(
            **key._asdict(),
            **session.figures(tier, persistent=True, fence_ns=median(samples.of(key))),
        )
        for key in samples.series
    ]
    hows = list(dict.fromkeys(key.how for key in samples.series))
    return PersistenceResult(
        tier=tier,
        points=sorted(points, key=lambda p: (hows.index(p.how), p.block_bytes, p.blocks_per_fence)),
        costs=[cost for how in hows if (cost := _cost(session, tier, how, samples))],
        overwrite=_overwrite(session, tier, cpu, effort) if "ntstore" in hows else None,
    )


def _cost(session: Session, tier: str, how: str, samples: Samples[Persist]) -> PersistCost | None:
    """The costs of a fence and of a line: medians of the coefficients of straight lines.

    Each epoch gives one line, fitted to the time per fence by number of lines per fence. Its
    coefficients are limited to values from 0 up, because negative costs are noise.
    """
    keys = [key for key in samples.series if key.how == how and key.block_bytes == 64]
    if len(keys) < 2:
        return None
    repeats = min(len(samples.series[key]) for key in keys)
    lines = [key.blocks_per_fence for key in keys]
    fits = [rising_line(lines, [samples.series[key][i] for key in keys]) for i in range(repeats)]
    return PersistCost(
        how=how,
        **session.figures(
            tier,
            persistent=True,
            per_fence_ns=median([fence for fence, _ in fits]),
            per_line_ns=median([line for _, line in fits]),
        ),
    )


def rising_line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Base and slope of the best line (least squares) with both from 0 up. x must be at least 0.

    If the unrestricted fit has a negative coefficient, it is set to zero and the other one is
    fitted alone. At most one of the two is negative.
    """
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    level = max(float(up.mean()), 0.0)
    through_zero = max(float(across @ up / (across @ across)), 0.0)
    slope, base = (float(v) for v in np.polyfit(across, up, 1))
    if base >= 0 and slope >= 0:
        return base, slope
    fits = [(level, 0.0), (0.0, through_zero)]
    return min(fits, key=lambda fit: float(((fit[0] + fit[1] * across - up) ** 2).sum()))


def _overwrite(session: Session, tier: str, cpu: int, effort: Effort) -> OverwriteResult:
    plan = OverwritePlan(tier, cpu, "ntstore")
    share = Effort(effort.budget_s / 4, effort.epochs)
    samples, _ = session.repeat(f"overwrite {tier}", "ns", plan, share, judge_spread=False)
    estimates = {key: median(values) for key, values in samples.series.items()}
    estimates["stalls"] = replace(estimates["stalls"], value=round(estimates["stalls"].value))
    return OverwriteResult(
        how=plan.how,
        block_bytes=OVERWRITTEN_BYTES,
        **session.figures(tier, persistent=True, **estimates),
    )
