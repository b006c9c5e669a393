"""Predictions from measurements, files and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.profiles import THIS, load_host, load_profile
from nearfar.units import parse_size
from nearfar.workflows import calibrating, host_here
from nearfar.workflows.plans import chosen_cpus
from nearfar.workflows.recording import open_session

if TYPE_CHECKING:
    from nearfar.measure.progress import ProgressSource
    from nearfar.measure.session import Session
    from nearfar.model import split
    from nearfar.model.interleave import SiteLoad
    from nearfar.model.map_work import MapPrediction
    from nearfar.model.results import (
        ContentionPrediction,
        InterleavePrediction,
        PipelinePrediction,
        SplitPrediction,
    )
    from nearfar.model.split_cost import Calibration
    from nearfar.model.structure_results import StructurePrediction
    from nearfar.records.choices import (
        MapModel,
        MapOperation,
        SetName,
        SplitModel,
        StencilVersion,
    )
    from nearfar.records.profile import Host


def contention(
    model: Path, near_threads: int, far_threads: int, *, mixed: bool = False
) -> ContentionPrediction:
    """Bandwidth of two sides that copy concurrently; ``mixed``: far threads use both tiers."""
    from nearfar.model import contention as equations
    from nearfar.model.contention_file import read_model

    return equations.predict(read_model(model), near_threads, far_threads, mixed=mixed)


@dataclass(frozen=True)
class PipelineCurves:
    """Files of measured curves. ``generate``: times of both stages, generation and analysis, of the
    same work in near memory alone."""

    near: Path
    far: Path
    generate: Path


def pipeline(
    curves: PipelineCurves,
    elements: int,
    iterations: int,
    threads: int,
    calibrate: str | None = None,
) -> PipelinePrediction:
    """Times of a pipeline for each split of the threads; ``calibrate``: file of a measured row."""
    from nearfar.model import pipeline as equations
    from nearfar.model.curves import read_curves
    from nearfar.model.tables import BYTES_PER_MB

    alone = read_curves(curves.generate, ("generate_s", "analyse_s"))
    inputs = equations.Inputs(
        read_curves(curves.near, ("copy",), scale=BYTES_PER_MB)["copy"],
        read_curves(curves.far, ("copy",), scale=BYTES_PER_MB)["copy"],
        alone["generate_s"],
        alone["analyse_s"],
        equations.Work(elements, iterations),
    )
    row = equations.read_calibration(calibrate) if calibrate is not None else None
    known = equations.calibrate(inputs, row) if row else None
    result = equations.predict(inputs, threads, known)
    if row:
        result.warnings = equations.inconsistencies(inputs, row)
    return result


def interleave(
    sites: Path,
    near: str,
    far: str,
    compute_s: float,
    near_budget: str | None,
    background: Sequence[str],
    plan: InterleavedPlan | None = None,
) -> InterleavePrediction:
    """The fraction of each site to place near; ``sites``: a CSV file; ``plan``: file to write."""
    from nearfar.model import interleave as equations

    near_memory, far_memory = equations.with_loads(
        equations.loaded_memory_of(load_profile(near)),
        equations.loaded_memory_of(load_profile(far)),
        background,
    )
    if near_budget is not None:
        near_memory = replace(near_memory, capacity_bytes=float(parse_size(near_budget)))
    table = equations.read_sites(sites, near_memory, far_memory)
    result = equations.predict(table, compute_s, near_memory, far_memory)
    if plan is not None:
        _write_interleaved(plan, table, result)
    return result


@dataclass(frozen=True)
class InterleavedPlan:
    """A plan file to write, and the near and the far node as ``0:1``."""

    path: Path
    nodes: str = "0:1"


def _write_interleaved(
    plan: InterleavedPlan, table: Sequence[SiteLoad], result: InterleavePrediction
) -> None:
    """Write the plan of a prediction. Raises BadInputError for rules that a plan cannot have."""
    import tempfile

    from nearfar.files import write_whole
    from nearfar.place.fractions import parse_nodes
    from nearfar.place.interleaved_plan import PlannedSite, plan_text
    from nearfar.plan_files.reader import read_plan

    near_s = result.all_near_time_s or result.time_s
    slowdowns = (result.time_s / near_s, (result.all_far_time_s or result.time_s) / near_s)
    sites = [
        PlannedSite(
            site.name,
            site.rule,
            round(found.near_share * result.steps),
            round(site.size_bytes),
            site.read_bytes,
            site.write_bytes,
        )
        for site, found in zip(table, result.sites, strict=True)
    ]
    text = plan_text(sites, parse_nodes(plan.nodes), slowdowns)
    with tempfile.TemporaryDirectory() as folder:
        tried = Path(folder) / plan.path.name
        tried.write_text(text)
        read_plan(tried)  # rejects invalid rules before the file exists
    write_whole(plan.path, text, "name another file with --plan")


@dataclass(frozen=True)
class SplitThreads:
    """Threads of each side; or ``total``, whose best split is found."""

    near: int | None = None
    far: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class SplitCost:
    """Software cost on the far side: from measured rows, or in ns of an element."""

    calibrate: str | None = None
    software_ns: float | None = None


@dataclass(frozen=True)
class SplitArray:
    """The array, and the version of the stencil."""

    rows: int
    cols: int
    element_bytes: int = 8
    version: StencilVersion = "direct"


def stencil_split(
    contention_file: Path,
    host: host_here.HostChoice,
    array: SplitArray,
    threads: SplitThreads,
    cost: SplitCost,
    progress: ProgressSource,
    *,
    far_rows: int | None = None,
    model: SplitModel = "nearfar",
) -> SplitPrediction:
    """Rows of a stencil to place in far memory, and the time of a sweep."""
    from nearfar.model import split as equations

    pairs = _pairs(threads)
    machine = _split_machine(contention_file, host, progress)
    known, measured = _split_cost(machine, cost, array.element_bytes)
    question = equations.Question(
        equations.Array(array.rows, array.cols, array.element_bytes),
        array.version,
        pairs,
        far_rows,
        model,
    )
    result = equations.predict(machine, question, known)
    instead = "the rates of both memories are those of --contention"
    result.limits = [*result.limits, *host_here.unused_latency(host.name, instead)]
    if measured:
        result.warnings = equations.inconsistencies(machine, measured)
    return result


def _split_cost(
    machine: split.Machine, cost: SplitCost, element_bytes: int
) -> tuple[Calibration | None, list[split.MeasuredRow]]:
    """The software cost, and the measured rows that it comes from."""
    from nearfar.model import split as equations
    from nearfar.model.split_cost import software_cost

    if cost.calibrate and cost.software_ns is not None:
        raise BadInputError(
            "--calibrate and --software-ns both give the software cost", "give one of them"
        )
    if cost.calibrate is not None:
        measured = equations.read_calibration(cost.calibrate, element_bytes)
        return (equations.calibrate(machine, measured) if measured else None), measured
    if cost.software_ns is None:
        return None, []
    if not isfinite(cost.software_ns):
        raise BadInputError("--software-ns is not finite", "give a time in nanoseconds")
    return software_cost(cost.software_ns * 1e-9), []


def _split_machine(
    contention_file: Path, host: host_here.HostChoice, progress: ProgressSource
) -> split.Machine:
    from nearfar.model.contention_file import read_model
    from nearfar.model.split import Machine

    model = read_model(contention_file)  # before anything is measured
    with open_session(progress) as session:
        return Machine(model, cache_share(host_here.host_for(host, session)))


def cache_share(host: Host) -> split.CacheShare:
    """The caches of a host that a stencil shares."""
    from nearfar.model.split import CacheShare

    return CacheShare(host.scalar("l2_bytes"), host.scalar("l3_bytes"), int(host.scalar("l3_ways")))


def _pairs(threads: SplitThreads) -> list[tuple[int, int]]:
    from nearfar.model.split import splits_of

    if threads.total is not None:
        if threads.near is not None or threads.far is not None:
            raise BadInputError(
                "--threads conflicts with --near-threads and --far-threads, which fix the split",
                "give either --threads, or both of the others",
            )
        return splits_of(threads.total)
    if threads.near is None or threads.far is None:
        raise BadInputError(
            "the number of threads is not specified",
            "give --near-threads and --far-threads, or --threads to find the best split",
        )
    return [(threads.near, threads.far)]


@dataclass(frozen=True)
class Target:
    """The memory to predict for, and its host; ``remeasure``: measure this machine again.

    What is measured here is measured on the last of ``cpus``: for a map the host ``this``, whose
    profile is then not stored; for a structure its operations in cache. Without ``cpus``, and for
    structures, the host is the stored profile.
    """

    far: str
    host: str = THIS
    cpus: str | None = None
    remeasure: bool = False


def map_operations(
    operation: MapOperation,
    operations: int,
    target: Target,
    progress: ProgressSource,
    *,
    value_bytes: int = 1,
    model: MapModel = "replay",
) -> MapPrediction:
    """Time of operations on PMDK's atomic hash map in far memory."""
    from nearfar.model import counters, map_gets, replay
    from nearfar.model.map_work import MapWork

    if operation != "get" and model != "replay":
        raise BadInputError(
            f"the model {model} is published for gets only", "leave --model out, or use replay"
        )
    work = MapWork(operation, operations, value_bytes)
    device = load_profile(target.far)
    if model != "replay":
        host = load_host(target.host)  # reject unknown hosts, although one model does not use any
        result = (
            counters.predict(work, device, host)
            if model == "counters"
            else map_gets.predict(work, device)
        )
        instead = f"all memory of the model {model} is {device.name}"
        result.limits = [*result.limits, *host_here.unused_latency(target.host, instead)]
        return result
    return replay.predict(work, device, _map_host(target, progress))


def _map_host(target: Target, progress: ProgressSource) -> Host:
    """Return a host with its latencies: from its file, or this machine as measured."""
    from nearfar.machine.topology import this_machine

    if target.host != THIS and target.cpus is not None:
        raise BadInputError(
            f"--cpus has no effect on --host {target.host}", "remove it, or use --host this"
        )
    cpu = chosen_cpus(this_machine(), target.cpus)[-1] if target.cpus is not None else None
    choice = host_here.HostChoice(target.host, target.remeasure, cpu=cpu)
    with open_session(progress) as session:
        return host_here.host_for(choice, session)


def structure(
    name: SetName,
    target: Target,
    progress: ProgressSource,
    *,
    entries: int = 1024,
    update: int = 50,
) -> StructurePrediction:
    """Time of an operation on a set of integers in a memory, and its slowdown."""
    from nearfar.machine.topology import this_machine
    from nearfar.measure import pool_tiers

    pool_tiers.require_pools()
    cpu = chosen_cpus(this_machine(), target.cpus)[-1]
    with open_session(progress) as session:
        return _structure(session, cpu, name, target, entries, update)


def _structure(
    session: Session, cpu: int, name: SetName, target: Target, entries: int, update: int
) -> StructurePrediction:
    from nearfar.model import slowdowns, structure_results
    from nearfar.model.devices import far_memory, is_disk, near_memory
    from nearfar.model.host_costs import costs_of
    from nearfar.model.structure_cases import SETS, ShapeCounter, sets

    device = load_profile(target.far)
    is_disk(device)  # rejects a device without a latency before anything is measured
    choice = host_here.HostChoice(target.host, target.remeasure)
    host = host_here.host_for(choice, session)
    costs = costs_of(host)
    near = near_memory(host, costs)
    work, twin = sets(name, entries, update)
    software = calibrating.software(session, (work, twin), host, cpu)
    counter = ShapeCounter(costs, cpu)
    case = structure_results.Case(
        name,
        entries,
        update,
        counter.shape(work.work),
        software[work],
        counter.shape(twin.work),
        software[twin],
    )
    published = slowdowns.slowdown(SETS[name][0], device.name, host.name)
    memory = far_memory(device, near)
    return structure_results.predict(case, costs, near, memory, published)
