"""Times and bandwidths of a pipeline's stages alone: the inputs of its prediction.

The far tier is characterized only by copies to it and reads of it; generation and analysis are
measured on the near side alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nearfar._native import ArrayBench, CompeteBench
from nearfar.measure.arrays import DOUBLE, MIN_TIMED_ALONE
from nearfar.measure.compete import FIRST_ITERATIONS, check_span, usage_of
from nearfar.measure.pipeline import PipelinePlan
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.teams import Teams
from nearfar.stats import Estimate, median

#: Target duration of one repeat of a figure, and its minimum number of iterations.
REPEAT_S = 0.05
MIN_ITERATIONS = 3
MAX_COPIES = 200

#: Values of stages are seconds for all iterations; those of copies, transfers and reads are bytes/s
#: of all threads.
Figure = Literal["generate", "analyse", "copy", "transfer", "read"]
Point = tuple[Figure, int]


@dataclass(frozen=True)
class AlonePlan:
    """Each figure at the thread counts that a prediction requires."""

    pipeline: PipelinePlan

    @property
    def threads(self) -> Sequence[int]:
        """The thread counts of the near side, of the far side, and of both."""
        teams = self.pipeline.teams
        both = teams.near_threads + teams.far_threads
        return sorted({teams.near_threads, teams.far_threads, both})

    @property
    def grid(self) -> Sequence[Point]:
        """Near figures for all these numbers of threads; far figures for that of the far side."""
        far = self.pipeline.teams.far_threads
        near: list[Point] = [
            (figure, n) for figure in ("generate", "analyse", "copy") for n in self.threads
        ]
        return [*near, ("transfer", far), ("read", far)]

    def epoch(self, seed: int) -> Samples[Point]:
        """Measure each figure on fresh memory."""
        samples: Samples[Point] = Samples()
        teams = self.pipeline.teams
        for n in self.threads:
            self._stages(n, samples)
            self._copies(samples, ("copy", n), Teams(n, 0, teams.cpus).near_cpus, [])
        self._copies(samples, ("transfer", teams.far_threads), [], teams.far_cpus)
        self._read(samples)
        return samples

    def _stages(self, threads: int, samples: Samples[Point]) -> None:
        plan = replace(self.pipeline, teams=Teams(threads, 0, self.pipeline.teams.cpus))
        first = plan.run(1)
        most = max(MIN_ITERATIONS, min(plan.iterations, int(REPEAT_S * 1e9 / first["total_ns"])))
        run = plan.run(most)
        scale = plan.iterations / most * 1e-9
        samples.add(("generate", threads), run["generate_ns"] * scale, run["members"])
        samples.add(("analyse", threads), run["analyse_ns"] * scale, [])

    def _copies(
        self, samples: Samples[Point], point: Point, near_cpus: list[int], far_cpus: list[int]
    ) -> None:
        """A vector's elements, divided among the threads of one side."""
        bench = CompeteBench(
            "near-far",
            self.pipeline.near,
            self.pipeline.far,
            max(self.pipeline.elements // point[1], 1),
            near_cpus,
            far_cpus,
        )
        first = bench.run(FIRST_ITERATIONS)
        slowest = max(t["wall_ns"][-1] for t in first["threads"]) / FIRST_ITERATIONS
        run = bench.run(int(np.clip(REPEAT_S * 1e9 / slowest, MIN_ITERATIONS, MAX_COPIES)))
        check_span(run)
        rate = run["near_bytes_per_s"] if near_cpus else run["far_bytes_per_s"]
        samples.add(point, rate, [usage_of(t) for t in run["threads"]])

    def _read(self, samples: Samples[Point]) -> None:
        plan = self.pipeline
        bench = ArrayBench(plan.far, plan.near, plan.near, plan.elements, plan.teams.far_cpus)
        bench.repeat("read", plan.teams.far_cpus)
        for _ in range(MIN_ITERATIONS):
            repeat = bench.repeat("read", plan.teams.far_cpus)
            rate = repeat["counted_bytes"] / repeat["seconds"]
            samples.add(("read", plan.teams.far_threads), rate, repeat["members"])

    def smaller(self) -> None:
        """None: no point can be dropped."""


def can_be_timed(plan: PipelinePlan) -> bool:
    """Whether a thread's part of a vector is long enough for its copy to be timed."""
    threads = plan.teams.near_threads + plan.teams.far_threads
    return plan.elements * DOUBLE // threads >= MIN_TIMED_ALONE


def measure(session: Session, plan: PipelinePlan, effort: Effort) -> Mapping[Point, Estimate]:
    """Medians by figure and number of threads."""
    alone = AlonePlan(plan)
    samples, _ = session.repeat("the stages alone", "", alone, effort, judge_spread=False)
    return {point: median(samples.of(point)) for point in alone.grid}
