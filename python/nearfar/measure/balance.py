"""Inputs of a stencil split's prediction: competing copies, and the stencil's own cost.

Only the near side runs the stencil here. The far tier is characterized only by its copy speed
concurrent with near copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nearfar._native import CompeteBench
from nearfar.measure.arrays import DOUBLE, default_array_bytes
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.stencil import SWEEPS_ALONE, StencilPlan
from nearfar.stats import Estimate, median

#: Number of copies that the fastest thread makes in one repeat.
ITERATIONS = 40

FIGURES = ("near", "far", "near_alone", "element")


class Balance(NamedTuple):
    """Bandwidths of both sides and of the near side alone; seconds per element and thread."""

    near: Estimate
    far: Estimate
    near_alone: Estimate
    element: Estimate


@dataclass(frozen=True)
class BalancePlan:
    """All figures, measured in sequence in each epoch, so that a disturbance affects them alike."""

    stencil: StencilPlan
    array_bytes: int

    @property
    def grid(self) -> Sequence[str]:
        """The figures."""
        return FIGURES

    def epoch(self, seed: int) -> Samples[str]:
        """Measure each figure on fresh memory."""
        samples: Samples[str] = Samples()
        plan = self.stencil
        both = self._copies(plan.teams.near_cpus, plan.teams.far_cpus)
        samples.add("near", both[0], [])
        samples.add("far", both[1], [])
        samples.add("near_alone", self._copies(plan.teams.near_cpus, [])[0], [])
        # The copy has the size of the stencil's array: a smaller one has lower costs of page tables
        # and caches.
        run = replace(plan, far_rows=0, with_alone=False).bench().run(SWEEPS_ALONE)
        elements = (plan.rows - 2) * plan.row_elements
        side_s = sum(run["near_ns"]) / len(run["near_ns"]) * 1e-9
        samples.add("element", side_s * plan.teams.near_threads / elements, run["members"])
        return samples

    def _copies(self, near_cpus: list[int], far_cpus: list[int]) -> tuple[float, float]:
        bench = CompeteBench(
            "far-far",
            self.stencil.near,
            self.stencil.far,
            self.array_bytes // DOUBLE,
            near_cpus,
            far_cpus,
        )
        bench.run(1)
        run = bench.run(ITERATIONS)
        return run["near_bytes_per_s"], run["far_bytes_per_s"]

    def smaller(self) -> None:
        """None: no point can be dropped."""


def measure(
    session: Session, plan: StencilPlan, effort: Effort, effective_last_cache: int
) -> Balance:
    """The figures, medians over the repeats."""
    balance = BalancePlan(plan, default_array_bytes(effective_last_cache))
    samples, _ = session.repeat("competition, and the cost of the sweep", "", balance, effort)
    return Balance(*(median(samples.of(figure)) for figure in FIGURES))
