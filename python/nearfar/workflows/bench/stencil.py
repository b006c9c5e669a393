"""A stencil over rows in near and far memory, with a given or a predicted split."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError
from nearfar.files import write_table
from nearfar.measure import stencil
from nearfar.workflows.plans import last_cache, stencil_plan
from nearfar.workflows.recording import Measured, Recording, recorded
from nearfar.workflows.stencil_split import (
    check_predictable,
    parse_far_rows,
    predict_split,
    read_split,
)

if TYPE_CHECKING:
    from nearfar.measure.session import Effort
    from nearfar.measure.stencil import StencilPlan
    from nearfar.records.choices import StencilKernel, StencilVersion
    from nearfar.records.together import StencilResult, StencilSplit
    from nearfar.workflows.options import Options

#: Seconds to measure by default.
BUDGET_S = 20.0


@dataclass(frozen=True)
class Work:
    """The array, its tiers, its threads. ``far_rows``: a number, ``auto``, or a split's file."""

    far_rows: str
    near: str = "dram"
    far: str = "shm:"
    rows: int = 8192
    cols: int = 8192
    kernel: StencilKernel = "stencil8"
    version: StencilVersion = "direct"
    near_threads: int | None = None
    far_threads: int | None = None

    def with_split(self, split: StencilSplit) -> Work:
        """The work with the fields that a saved split contains."""
        held = {name: getattr(split, name) for name in HELD}
        return replace(self, **held)

    def arguments(self, options: Options) -> dict[str, Any]:
        """The request, as the record has it."""
        return {
            "kernel": self.kernel,
            "rows": self.rows,
            "cols": self.cols,
            "far_rows": self.far_rows,
            "version": self.version,
            "near": self.near,
            "far": self.far,
            "time_s": options.budget_s(BUDGET_S),
        }


#: Contents of a saved split.
HELD = ("kernel", "rows", "cols", "version", "near", "far", "near_threads", "far_threads")


def predict(work: Work, options: Options) -> Measured[StencilSplit]:
    """Predict the split from copies on both tiers, and measure no stencil."""
    if parse_far_rows(work.far_rows) is not None:
        raise BadInputError("--split-only requires --far-rows auto", "give --far-rows auto")
    with recorded("bench stencil", work.arguments(options), options, "stencil") as recording:
        plan = stencil_plan(recording, work, None, options, with_alone=True)
        check_predictable(plan)
        cache = last_cache(recording, plan.teams.cpus[0])
        _, split = _split(recording, plan, options.effort(BUDGET_S), cache)
    return recording.measured(split)


def measure(
    work: Work, options: Options, *, csv: Path | None = None, given: Collection[str] = ()
) -> Measured[StencilResult]:
    """Measure a given, a saved or a predicted split.

    ``csv`` is a file for the row that ``nearfar predict split`` reads. ``given``: names of the
    fields that were requested; a saved split that holds one of them is refused.
    """
    source = parse_far_rows(work.far_rows)
    split = None
    if isinstance(source, Path):
        split = read_split(source, [name for name in HELD if name in given])
        work, source = work.with_split(split), split.far_rows
    with recorded("bench stencil", work.arguments(options), options, "stencil") as recording:
        compares = split is not None or source is None
        plan = stencil_plan(recording, work, source, options, with_alone=compares)
        _check_row(csv, plan, predicts=source is None)
        if source is None:
            check_predictable(plan)
        cache = last_cache(recording, plan.teams.cpus[0])
        effort = options.effort(BUDGET_S)
        if source is None:
            plan, split = _split(recording, plan, effort, cache)
        result = stencil.measure(recording.session, plan, effort, cache, split)
        recording.keep("stencil", result)
    if csv:
        _write_row(csv, result)
    return recording.measured(result)


def _split(
    recording: Recording, plan: StencilPlan, effort: Effort, cache: int
) -> tuple[StencilPlan, StencilSplit]:
    """Predict the split, record it, and plan the run with it."""
    split = predict_split(recording.session, plan, effort, cache)
    recording.keep("stencil_split", split)
    plan = replace(plan, far_rows=split.far_rows)
    plan.check_room()
    return plan, split


def _check_row(csv: Path | None, plan: StencilPlan, *, predicts: bool) -> None:
    """Raise BadInputError for a row that cannot calibrate a model."""
    one_side = not predicts and not 0 < plan.far_rows < plan.rows
    if csv and (plan.teams.oversubscribed or one_side or plan.kernel != "stencil8"):
        raise BadInputError(
            "such a row cannot calibrate a split: both sides need rows, and each thread a CPU",
            "use fewer threads, another --far-rows and stencil8, or leave --csv out",
        )


def _write_row(path: Path, r: StencilResult) -> None:
    numbers = ("rows", "cols", "far_rows", "near_threads", "far_threads")
    times = [f"{seconds:.6g}" for seconds in (r.near_time_s, r.far_time_s, r.total_time_s)]
    row = [*(getattr(r, name) for name in numbers), *times]
    write_table(path, [*numbers, "near_s", "far_s", "total_s"], [row])
