"""Pipeline: near threads generate while far threads copy and analyze the last result."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar._native import PipelineBench
from nearfar.errors import MachineError
from nearfar.measure.arrays import DOUBLE, check_bytes, in_cache
from nearfar.measure.forecast_errors import errors_of
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.teams import Teams
from nearfar.records.forecasts import PipelineForecast
from nearfar.records.together import PipelineLap, PipelineResult
from nearfar.stats import median

if TYPE_CHECKING:
    from nearfar._native import Member, PipelineRun

#: As in the thesis.
ELEMENTS, ITERATIONS = 16_000_000, 5_000
QUICK_ELEMENTS, QUICK_ITERATIONS = 1_000_000, 50
#: Number of iterations of each repeat whose results are checked against near threads alone.
COMPARED = 50
#: Iterations from which the time of one is known, and the repeats that share a given time.
FIRST_ITERATIONS, EXPECTED_REPEATS = 3, 6
#: Near memory per element: an offset, four columns and values, the source and two vectors.
NEAR_BYTES = 8 + 4 * (4 + 8) + 3 * DOUBLE

NEAR_STAGES = ("generate", "analyse", "total")
STAGES = ("generate", "generate_idle", "transfer", "analyse", "transfer_idle", "total")


@dataclass(frozen=True)
class Seen:
    """Other results of a repeat: the computed results and the times of its first iterations."""

    findings: Sequence[tuple[float, ...]]
    timeline: list[PipelineLap]


def _timeline(run: PipelineRun) -> list[PipelineLap]:
    began = min(start for _, _, start, _ in run["laps"])
    return [
        PipelineLap.model_validate(
            {
                "side": side,
                "stage": stage,
                "start_s": (start - began) * 1e-9,
                "end_s": (end - began) * 1e-9,
            }
        )
        for side, stage, start, end in run["laps"]
    ]


@dataclass(frozen=True)
class PipelinePlan:
    """One split of the threads. Values: seconds, by stage.

    Without far threads, near threads do all of the work.
    """

    elements: int
    iterations: int
    near: str
    far: str
    teams: Teams
    values_seed: int

    @property
    def near_only(self) -> bool:
        """Whether near threads do all of the work, without data on the far tier."""
        return self.teams.far_threads == 0

    @property
    def grid(self) -> Sequence[str]:
        """The stages, the idle times, and the total."""
        return NEAR_STAGES if self.near_only else STAGES

    def check_room(self) -> None:
        """Reject vectors that do not fit, before anything is allocated."""
        wanted = {self.near: self.elements * NEAR_BYTES}
        if not self.near_only:
            wanted[self.far] = wanted.get(self.far, 0) + self.elements * DOUBLE
        check_bytes(wanted, "use fewer --elements")

    def run(self, iterations: int) -> PipelineRun:
        """Run ``iterations`` iterations on fresh memory."""
        bench = PipelineBench(
            self.elements,
            self.near,
            self.far,
            self.teams.near_cpus,
            self.teams.far_cpus,
            self.values_seed,
        )
        return _interruptible(bench, iterations)

    def fitted(self, time_s: float) -> PipelinePlan:
        """Return the plan with fewer iterations, so that its repeats fit into a time."""
        each_s = self.run(FIRST_ITERATIONS)["total_ns"] * 1e-9 / FIRST_ITERATIONS
        fitting = int(time_s / EXPECTED_REPEATS / each_s)
        return replace(self, iterations=min(self.iterations, max(fitting, FIRST_ITERATIONS)))

    def epoch(self, seed: int) -> Samples[str]:
        """Run all iterations. All repeats start from the same vector and must compute the same."""
        run = self.run(self.iterations)
        seen = Seen(run["findings"][:COMPARED], _timeline(run))
        samples: Samples[str] = Samples(extras=[seen])
        times = {
            "generate": run["generate_ns"],
            "generate_idle": run["generate_idle_ns"],
            "transfer": run["transfer_ns"],
            "analyse": run["analyse_ns"],
            "transfer_idle": run["transfer_idle_ns"],
            "total": run["total_ns"],
        }
        for stage in self.grid:
            members = _awake(run, self.teams) if stage == "total" else []
            samples.add(stage, times[stage] * 1e-9, members)
        return samples

    def smaller(self) -> None:
        """None: there is only one point."""


def _interruptible(bench: PipelineBench, iterations: int) -> PipelineRun:
    """Run in another thread, so that a signal reaches this one, and ends the run."""
    with ThreadPoolExecutor(1) as runner:
        run = runner.submit(bench.run, iterations)
        try:
            return run.result()
        except KeyboardInterrupt:
            bench.stop()
            raise


def _awake(run: PipelineRun, teams: Teams) -> list[Member]:
    """Accounts of the threads, without the time in which a side's first thread sleeps until the
    other side is done: that is a result, not a disturbance."""
    members = [member.copy() for member in run["members"]]
    members[0]["wall_ns"] = max(members[0]["wall_ns"] - run["generate_idle_ns"], 1)
    if teams.far_threads:
        first = members[teams.near_threads]
        first["wall_ns"] = max(first["wall_ns"] - run["transfer_idle_ns"], 1)
    return members


def measure(
    session: Session,
    plan: PipelinePlan,
    effort: Effort,
    effective_last_cache: int,
    forecast: PipelineForecast | None = None,
) -> PipelineResult:
    """Run the plan, and compare the results of its iterations with those of near threads alone.

    ``forecast``: the prediction of this run.
    """
    # Idle times are differences of other times, so their spread is not evidence of a disturbance.
    samples, _ = session.repeat("pipeline", "s", plan, effort, judge_spread=False)
    session.progress.step("the same on the near side alone, to compare", sum(session.span))
    compared = min(plan.iterations, COMPARED)
    alone = replace(plan, teams=Teams(1, 0, plan.teams.cpus)).run(compared)
    repeats: list[Seen] = samples.extras
    if any(seen.findings != alone["findings"] for seen in repeats):
        raise MachineError(
            "the pipeline found other figures than near threads alone: its times are worthless",
            "check the memory of this machine; report it if it is sound",
        )
    times = {f"{stage}_time_s": median(samples.of(stage)) for stage in plan.grid}
    tiers = (plan.near,) if plan.near_only else (plan.near, plan.far)
    return PipelineResult(
        **session.figures(*tiers, persistent=False, **times),
        elements=plan.elements,
        iterations=plan.iterations,
        near=plan.near,
        far=None if plan.near_only else plan.far,
        near_threads=plan.teams.near_threads,
        far_threads=plan.teams.far_threads,
        oversubscribed=plan.teams.oversubscribed,
        in_cache=in_cache(plan.elements * DOUBLE, effective_last_cache),
        compared_iterations=compared,
        timeline=repeats[0].timeline,
        forecast=forecast,
        errors=errors_of(forecast, times),
    )
