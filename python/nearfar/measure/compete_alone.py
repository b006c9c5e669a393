"""The bandwidth of each side of a competition alone: the inputs of its prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearfar._native import CompeteBench
from nearfar.measure.arrays import DOUBLE, check_room
from nearfar.measure.compete import (
    FIRST_ITERATIONS,
    CompetePlan,
    Split,
    check_span,
    usage_of,
)
from nearfar.measure.drops import iteration_seconds
from nearfar.measure.session import Effort, Samples, Session
from nearfar.stats import Estimate, median

#: Target duration of one repeat of a side, and bounds of its number of iterations.
REPEAT_S = 0.2
MIN_ITERATIONS, MAX_ITERATIONS = 5, 500

#: Side and number of threads. The near side is also measured with as many threads as both sides.
Point = tuple[str, int]


class AloneEstimates(NamedTuple):
    """Bandwidths of each side alone, and of as many near threads as both sides have together."""

    near: Estimate
    far: Estimate
    together: Estimate


@dataclass(frozen=True)
class AlonePlan:
    """Near threads, then far threads, each alone. Values: bytes/s."""

    compete: CompetePlan
    splits: tuple[Split, ...]

    @property
    def grid(self) -> Sequence[Point]:
        """Near and far threads of all splits, and as many near threads as both sides have."""
        near = {n for d, v in self.splits for n in (d, d + v)}
        return [
            *(("near", n) for n in sorted(near)),
            *(("far", v) for v in sorted({v for _, v in self.splits})),
        ]

    def check_room(self) -> None:
        """Reject arrays that do not fit, before anything is allocated."""
        most = max(threads for _, threads in self.grid)
        check_room([self.compete.near] * (2 * most), self.compete.array_bytes)

    def epoch(self, seed: int) -> Samples[Point]:
        """Fresh arrays for each point."""
        samples: Samples[Point] = Samples()
        for side, threads in self.grid:
            cpus = list(self.compete.cpus)
            team = cpus[:threads] if side == "near" else cpus[-threads:]
            teams = (team, []) if side == "near" else ([], team)
            plan = self.compete
            bench = CompeteBench(plan.mode, plan.near, plan.far, plan.array_bytes // DOUBLE, *teams)
            first = bench.run(FIRST_ITERATIONS)
            fastest = min(float(iteration_seconds(t).min()) for t in first["threads"])
            wanted = plan.iterations or REPEAT_S / fastest
            run = bench.run(int(np.clip(wanted, MIN_ITERATIONS, MAX_ITERATIONS)))
            check_span(run)
            rate = run["near_bytes_per_s"] if side == "near" else run["far_bytes_per_s"]
            samples.add((side, threads), rate, [usage_of(t) for t in run["threads"]])
        return samples

    def smaller(self) -> None:
        """None: no point can be dropped."""


def measure(
    session: Session, plan: CompetePlan, splits: Sequence[Split], effort: Effort
) -> dict[Split, AloneEstimates]:
    """Medians by split. Raises MachineError if as many near threads as both sides do not fit."""
    alone = AlonePlan(plan, tuple(splits))
    alone.check_room()
    samples, _ = session.repeat("each side alone", "bytes_per_s", alone, effort, label=_name)
    return {
        (d, v): AloneEstimates(
            median(samples.of(("near", d))),
            median(samples.of(("far", v))),
            median(samples.of(("near", d + v))),
        )
        for d, v in splits
    }


def _name(point: Point) -> str:
    side, threads = point
    return f"{side}, {threads} threads"
