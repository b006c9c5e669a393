"""Predict performance from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.api._common import public
from nearfar.measure.progress import silent
from nearfar.workflows.host_here import HostChoice
from nearfar.workflows.predicting import SplitCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.measure.progress import ProgressSource
    from nearfar.model.map_work import MapPrediction
    from nearfar.model.results import (
        ContentionPrediction,
        InterleavePrediction,
        PipelinePrediction,
        SplitPrediction,
    )
    from nearfar.model.structure_results import StructurePrediction
    from nearfar.records.choices import MapModel, MapOperation, SetName, SplitModel
    from nearfar.workflows.predicting import PipelineCurves, SplitArray, SplitThreads, Target


@public
def predict_contention(
    model: str | Path, near_threads: int, far_threads: int, *, mixed: bool = False
) -> ContentionPrediction:
    """Predict the bandwidth of two sides that copy concurrently.

    ``model``: a file of ``nearfar fit contention``. ``mixed``: far threads copy between both tiers.
    """
    from nearfar.workflows import predicting

    return predicting.contention(Path(model), near_threads, far_threads, mixed=mixed)


@public
def predict_pipeline(
    curves: PipelineCurves,
    *,
    elements: int,
    iterations: int,
    threads: int,
    calibrate: str | None = None,
) -> PipelinePrediction:
    """Predict the times of a pipeline for each split of the threads.

    ``calibrate``: a CSV file with one measured row of this workload.
    """
    from nearfar.workflows import predicting

    return predicting.pipeline(curves, elements, iterations, threads, calibrate)


@public
def predict_split(
    contention: str | Path,
    array: SplitArray,
    threads: SplitThreads,
    *,
    host: str = "this",
    remeasure: bool = False,
    cost: SplitCost | None = None,
    far_rows: int | None = None,
    model: SplitModel = "nearfar",
    progress: ProgressSource = silent,
) -> SplitPrediction:
    """Predict how many rows of a stencil to place in far memory, and the time of a sweep.

    ``contention``: a file of ``nearfar fit contention``. ``far_rows``: None for the balanced
    number.
    """
    from nearfar.workflows import predicting

    return predicting.stencil_split(
        Path(contention),
        HostChoice(host, remeasure),
        array,
        threads,
        cost or SplitCost(),
        progress,
        far_rows=far_rows,
        model=model,
    )


@public
def predict_interleave(
    sites: str | Path,
    near: str,
    far: str,
    *,
    compute_s: float,
    near_budget: str | None = None,
    background: Sequence[str] = (),
    plan: str | Path | None = None,
    nodes: str = "0:1",
) -> InterleavePrediction:
    """Predict which fraction of each site to place near, under the load of the sites themselves.

    ``sites``: a CSV file; ``compute_s``: wall time without their stalls; ``background``: loads of
    other programs, such as ``near=40GB/s``; ``plan``: file to write for ``nearfar run --plan``,
    with the near and the far node in ``nodes``.
    """
    from nearfar.workflows import predicting

    written = predicting.InterleavedPlan(Path(plan), nodes) if plan is not None else None
    return predicting.interleave(
        Path(sites), near, far, compute_s, near_budget, background, written
    )


@public
def predict_map(
    operation: MapOperation,
    operations: int,
    target: Target,
    *,
    value_bytes: int = 1,
    model: MapModel = "replay",
    progress: ProgressSource = silent,
) -> MapPrediction:
    """Predict the time of operations on PMDK's atomic hash map in far memory."""
    from nearfar.workflows import predicting

    return predicting.map_operations(
        operation, operations, target, progress, value_bytes=value_bytes, model=model
    )


@public
def predict_structure(
    name: SetName,
    target: Target,
    *,
    entries: int = 1024,
    update: int = 50,
    progress: ProgressSource = silent,
) -> StructurePrediction:
    """Predict the time of an operation on a set of integers in a memory, and its slowdown.

    ``update``: percentage of updates. Software time is measured on this machine.
    """
    from nearfar.workflows import predicting

    return predicting.structure(name, target, progress, entries=entries, update=update)
