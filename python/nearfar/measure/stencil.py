"""Stencil: one array swept by all threads, its rows divided between two memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from nearfar._native import StencilBench
from nearfar.errors import BadInputError, MachineError
from nearfar.measure.arrays import DOUBLE, check_bytes, in_cache
from nearfar.measure.ceiling import check_rate
from nearfar.measure.forecast_errors import errors_of
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.teams import Teams
from nearfar.records.choices import StencilKernel, StencilVersion
from nearfar.records.together import StencilResult, StencilSplit, elements_of_row
from nearfar.stats import Estimate, median

#: Sweeps of one repeat, as in the thesis.
SWEEPS = 10
#: Sweeps of the comparison runs with all rows on one side.
SWEEPS_ALONE = 3
#: Counted bytes per element: one load and one store. Loads of its neighbors hit in caches.
ELEMENT_BYTES = 16

ALONE = ("near_alone", "far_alone")


@dataclass(frozen=True)
class StencilPlan:
    """One division of the rows. Values: mean seconds per sweep: ``near``, ``far``, ``total``.

    ``with_alone``: whether each repeat also sweeps with all rows near, and with all rows far.
    """

    rows: int
    cols: int
    far_rows: int
    version: StencilVersion
    near: str
    far: str
    teams: Teams
    values_seed: int
    kernel: StencilKernel = "stencil8"
    with_alone: bool = False

    def __post_init__(self) -> None:
        if self.far_rows > self.rows:
            raise BadInputError(
                f"{self.far_rows} far rows of an array of {self.rows}",
                f"give --far-rows of at most {self.rows}",
            )

    @property
    def near_rows(self) -> int:
        """Rows on the near tier."""
        return self.rows - self.far_rows

    @property
    def grid(self) -> Sequence[str]:
        """The sides that have rows, and the total."""
        rows = {"near": self.near_rows, "far": self.far_rows, "total": self.rows}
        sides = [side for side, count in rows.items() if count]
        return [*sides, *ALONE] if self.with_alone else sides

    @property
    def row_elements(self) -> int:
        """Elements of a row."""
        return elements_of_row(self.kernel, self.cols)

    def alone(self) -> dict[str, StencilPlan]:
        """The same stencil with all rows near, and with all rows far."""
        near, far = (replace(self, far_rows=rows, with_alone=False) for rows in (0, self.rows))
        return dict(zip(ALONE, (near, far), strict=True))

    def check_room(self) -> None:
        """Reject arrays that do not fit, before anything is allocated."""
        for plan in self.alone().values() if self.with_alone else ():
            plan.check_room()
        ghost = 1 if self.version == "ghost" and self.near_rows and self.far_rows else 0
        wanted: dict[str, int] = {}
        for tier, rows in ((self.near, self.near_rows), (self.far, self.far_rows)):
            if rows:
                both_arrays = 2 * (rows + ghost) * self.row_elements * DOUBLE
                wanted[tier] = wanted.get(tier, 0) + both_arrays
        check_bytes(wanted, "use fewer --rows or --cols, or another split (--far-rows)")

    def bench(self) -> StencilBench:
        """Fresh arrays, first touched by the threads that use them."""
        return StencilBench(
            self.rows,
            self.row_elements,
            self.far_rows,
            self.version,
            self.near,
            self.far,
            self.teams.near_cpus if self.near_rows else [],
            self.teams.far_cpus if self.far_rows else [],
            self.values_seed,
            self.cols if self.kernel == "stencil7" else 0,
        )

    def epoch(self, seed: int) -> Samples[str]:
        """Run ten sweeps. All repeats start from the same values, and must end with the same."""
        bench = self.bench()
        run = bench.run(SWEEPS)
        samples: Samples[str] = Samples(extras=[bench.checksum()])
        times = {"near": run["near_ns"], "far": run["far_ns"], "total": run["total_ns"]}
        del bench  # frees its memory before the next one
        for side in set(self.grid) & times.keys():
            usages = run["members"] if side == "total" else []
            samples.add(side, fmean(times[side]) * 1e-9, usages)
        for side, plan in self.alone().items() if self.with_alone else ():
            alone = plan.bench().run(SWEEPS_ALONE)
            samples.add(side, fmean(alone["total_ns"]) * 1e-9, alone["members"])
        moved = self.rows * self.row_elements * ELEMENT_BYTES
        threads = self.teams.near_threads + self.teams.far_threads
        check_rate(moved / (fmean(run["total_ns"]) * 1e-9), threads, "the stencil")
        return samples

    def smaller(self) -> None:
        """None: there is only one point."""


def measure(
    session: Session,
    plan: StencilPlan,
    effort: Effort,
    effective_last_cache: int,
    split: StencilSplit | None = None,
) -> StencilResult:
    """Run the plan, and compare the final values of each repeat with a serial sweep.

    ``split``: the prediction that chose the far rows.
    """
    samples, _ = session.repeat(f"stencil {plan.version}", "s", plan, effort)
    session.progress.step("the same serially, to compare", sum(session.span))
    serial = plan.bench()
    serial.run_serially(SWEEPS)
    if set(samples.extras) != {serial.checksum()}:
        raise MachineError(
            "the shared stencil left other values than a serial sweep: its times are worthless",
            "check the memory of this machine; report it if it is sound",
        )
    times = {f"{side}_time_s": median(samples.of(side)) for side in samples.series}
    figures = {**times, **_rates(plan, samples)}
    return StencilResult(
        **session.figures(plan.near, plan.far, persistent=False, **figures),
        kernel=plan.kernel,
        split=split,
        rows=plan.rows,
        cols=plan.cols,
        far_rows=plan.far_rows,
        version=plan.version,
        near=plan.near,
        far=plan.far,
        near_threads=plan.teams.near_threads,
        far_threads=plan.teams.far_threads,
        oversubscribed=plan.teams.oversubscribed,
        in_cache=in_cache(plan.rows * plan.row_elements * DOUBLE, effective_last_cache),
        sweeps=SWEEPS,
        matches_serial=True,
        errors=errors_of(split, times),
    )


def _rates(plan: StencilPlan, samples: Samples[str]) -> dict[str, Estimate]:
    """Bandwidth of each side: counted bytes over time, comparable with that of a copy."""
    rows = {"near": plan.near_rows, "far": plan.far_rows}
    return {
        f"{side}_bandwidth_bytes_per_s": median(
            [count * plan.row_elements * ELEMENT_BYTES / seconds for seconds in samples.of(side)]
        )
        for side, count in rows.items()
        if count
    }
