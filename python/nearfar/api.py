"""nearfar from Python: the functions that the command line itself calls.

    >>> import nearfar
    >>> counts = nearfar.simulate(nearfar.SimRequest(pattern="random", far="cxl-ddr5"))
    >>> counts.time_s, counts.provenance["time_s"].origin
    >>> counts.to_polars()

Each function measures, computes or reads, prints nothing, and returns its result. Functions that
write a record return a :class:`Measured`: ``result`` is the model of the result
(``nearfar.records``), ``run`` the whole record with the machine and the verdict on noise, and
``folder`` its directory.
Measured results, records, simulations and predictions have ``to_polars()``: a table with one row
per figure. It requires polars.

Errors are subclasses of ``nearfar.errors.NearfarError``, with the next step in ``next_step``.
``progress``: a function that returns a context manager, which yields a ``Progress`` receiver
(``nearfar.measure.progress``). Default: no reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from nearfar.errors import from_native
from nearfar.measure.progress import ProgressSource, silent
from nearfar.process.stdin import StandardInput
from nearfar.simulation.controller import Controller
from nearfar.simulation.memory import MemoryWork, SimulatedMemory
from nearfar.units import parse_size
from nearfar.workflows.host_here import HostChoice
from nearfar.workflows.options import Options
from nearfar.workflows.predicting import (
    PipelineCurves,
    SplitArray,
    SplitCost,
    SplitThreads,
    Target,
)
from nearfar.workflows.recording import Measured
from nearfar.workflows.simulating import SimRequest
from nearfar.workflows.tracing import CachesWanted, Traced

if TYPE_CHECKING:
    from nearfar.model.map_work import MapPrediction
    from nearfar.model.results import (
        ContentionPrediction,
        InterleavePrediction,
        PipelinePrediction,
        SplitPrediction,
    )
    from nearfar.model.structure_results import StructurePrediction
    from nearfar.records.advice import AdviceResult
    from nearfar.records.choices import (
        MapModel,
        MapOperation,
        OtherTool,
        SetName,
        SplitModel,
        TraceRecorder,
    )
    from nearfar.records.matrix import MatrixResult
    from nearfar.records.placement import PlacementResult
    from nearfar.records.profile import Profile
    from nearfar.records.profile_list import ListedProfile
    from nearfar.records.run import Sections
    from nearfar.records.simulation import CountsSimulation, LoadCurve, Simulation
    from nearfar.records.variants import VariantsResult
    from nearfar.simulation.link_fit import FittedLink
    from nearfar.workflows.comparing import Verdict
    from nearfar.workflows.study import Studied
    from nearfar.workflows.subjects import Subject

__all__ = [
    "CachesWanted",
    "Controller",
    "HostChoice",
    "Measured",
    "MemoryWork",
    "Options",
    "PipelineCurves",
    "SimRequest",
    "SimulatedMemory",
    "SplitArray",
    "SplitCost",
    "SplitThreads",
    "StandardInput",
    "Target",
    "Traced",
    "advise",
    "compare",
    "compare_variants",
    "export_device",
    "fit_link",
    "import_profile",
    "list_profiles",
    "load",
    "place_process",
    "predict_contention",
    "predict_interleave",
    "predict_map",
    "predict_pipeline",
    "predict_split",
    "predict_structure",
    "probe",
    "probe_matrix",
    "simulate",
    "study",
    "trace",
    "write_profile",
]


P = ParamSpec("P")
R = TypeVar("R")


def _public(function: Callable[P, R]) -> Callable[P, R]:
    """Raise errors of the native core as the package's own."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        from nearfar._native import NativeError

        try:
            return function(*args, **kwargs)
        except NativeError as error:
            raise from_native(error) from None

    return call


@_public
def study(options: Options | None = None, *, full: bool = False) -> Studied:
    """Measure all memory of this machine, as ``nearfar study`` does.

    Takes under three minutes, or half an hour if ``full``. ``result`` is the record itself;
    ``report`` is the HTML page next to it.
    """
    from nearfar.workflows import study as workflow

    return workflow.study(options or Options(), full=full)


@_public
def probe(
    tier: str = "dram",
    options: Options | None = None,
    *,
    quick: bool = False,
    region: int | str | None = None,
    threads: Sequence[int] = (),
    size: str | None = None,
) -> Measured[Sections]:
    """Measure one tier in depth, as ``nearfar probe`` does.

    ``tier``: such as ``dram``, ``numa:1``, ``shm:``. ``region``: bytes of the largest region of the
    latency curve; ``size``: of an array, such as ``256MiB``. The folder of the record has
    ``profile.toml``, which ``far=`` and ``near=`` of other functions accept.
    """
    from nearfar.workflows import study as workflow

    return workflow.probe(
        tier,
        options or Options(),
        quick=quick,
        region_bytes=_bytes(region),
        threads=threads,
        size=size,
    )


@_public
def probe_matrix(options: Options | None = None) -> Measured[MatrixResult]:
    """Measure latency and bandwidth from the CPUs of each node to the memory of each node.

    This is ``nearfar probe --matrix``. On a machine of one node the matrix has one entry.
    """
    from nearfar.workflows import study as workflow

    return workflow.probe_matrix(options or Options())


@_public
def advise(
    program: Sequence[str],
    options: Options | None = None,
    *,
    near_budget: int | str | None = None,
    far: Sequence[str] = ("cxl-asic",),
    near: str = "dram",
    host: HostChoice | str = "this",
    time_s: float = 300.0,
    ignore_failure: bool = False,
    stdin: StandardInput | None = None,
    emulate: bool = False,
    pid: int | None = None,
    perf: str | Path | None = None,
    background: Sequence[str] = (),
    whole_sites: bool = False,
    peaks: bool = False,
) -> Measured[AdviceResult]:
    """Predict the slowdown of a program on far memory, and plan which of its data stays near.

    ``program``: the command line; or empty, with the ``pid`` of a running process, which is sampled
    for ``time_s``, or with ``perf``, a file that perf recorded. ``emulate``: trace every access
    under an emulator instead of sampling stalls.
    ``far``: device profiles or tiers, each advised on alone; the plan is for the first. ``near``: a
    device profile or a tier. ``near_budget``: near memory for what a plan can
    move, in bytes or as ``256MiB``; default: the knee of the curve. ``time_s``: time limit of each
    run, in seconds. ``background``: traffic of other programs on these profiles, such as
    ``far=5GB/s``. ``whole_sites``: place no site on both memories. ``peaks``: also measure the
    bandwidth of all threads on tiers. ``host``: host whose caches are modeled; ``this`` is measured
    on first use.
    ``stdin``: empty by default. ``ignore_failure``: accept a nonzero exit code. ``result.plan`` is
    the file of the plan for ``nearfar run --plan``. Raises BadInputError, MachineError.
    """
    from nearfar.workflows import advising
    from nearfar.workflows.observation import AdviceRequest

    wanted = AdviceRequest(
        program=tuple(program),
        budget=_bytes(near_budget),
        far=tuple(far),
        near=near,
        host=HostChoice(host) if isinstance(host, str) else host,
        time_s=time_s,
        ignore_failure=ignore_failure,
        stdin=stdin or StandardInput(),
        emulate=emulate,
        pid=pid,
        perf=None if perf is None else str(perf),
        background=tuple(background),
        whole_sites=whole_sites,
        peaks=peaks,
    )
    return advising.advise_program(wanted, options or Options())


@_public
def place_process(
    pid: int,
    options: Options | None = None,
    *,
    plan: str | Path | None = None,
    tiers: Sequence[str] = (),
    once: bool = False,
    revert: bool = False,
    run: str | Path | None = None,
    rate_bytes_per_s: float | None = 256 << 20,
    time_s: float | None = None,
    shared: bool = False,
) -> Measured[PlacementResult]:
    """Move the pages of a running program to where a plan says, as ``nearfar place`` does.

    ``plan``: a plan file; or None with ``revert``, which moves pages back: those of the record
    ``run``, by default of the newest of this process. ``tiers``: such as ``far=numa:1``. Unless
    ``once``, returns when the program has ended, after ``time_s`` seconds, or on KeyboardInterrupt.
    ``rate_bytes_per_s``: None for no limit. ``shared``: also move pages that other processes map;
    requires CAP_SYS_NICE. Raises BadInputError, MachineError.
    """
    from nearfar.workflows import placing

    wanted = placing.PlaceRequest(
        pid=pid,
        plan=None if plan is None else Path(plan),
        tiers=tuple(tiers),
        once=once,
        revert=revert,
        run=None if run is None else Path(run),
        rate_bytes_per_s=rate_bytes_per_s,
        time_s=time_s,
        shared=shared,
    )
    return placing.place(wanted, options or Options())


@_public
def trace(
    program: Sequence[str],
    output: str | Path,
    *,
    caches: CachesWanted | None = None,
    recorder: TraceRecorder = "qemu",
    aside: bool = False,
    progress: ProgressSource = silent,
) -> Traced:
    """Record the memory accesses of a program behind the caches of a host.

    ``output``: the trace to write, which must not exist. ``caches``: those of this machine by
    default. ``aside``: the program's standard output goes to standard error.
    """
    from nearfar.workflows import tracing

    return tracing.record(
        program, Path(output), caches or CachesWanted(), progress, recorder=recorder, aside=aside
    )


@_public
def simulate(
    request: SimRequest,
    *,
    given: Mapping[str, str] | None = None,
    progress: ProgressSource = silent,
) -> Simulation | CountsSimulation | LoadCurve:
    """Simulate a program on two memories: from a trace, from counts, or a synthetic stream.

    A memory is a device profile, or a tier of this machine (``dram``), measured once.
    ``given``: names of the fields that the caller set, by field, for error messages; default:
    fields that differ from their defaults. Raises BadInputError for a field without effect.
    """
    from nearfar.workflows import simulating

    return simulating.simulate(request, given, progress)


@_public
def load(name_or_path: str) -> Subject:
    """Load a run record, the JSON result of a verb, a device profile, or a host profile."""
    from nearfar.workflows import subjects

    return subjects.load(name_or_path)


@_public
def fit_link(device: Profile, measured: Profile, name: str) -> FittedLink:
    """Give the link of a simulated device the latency that was measured of ``measured`` by load.

    Raises BadInputError if the device has no link, or takes longer without it.
    """
    from nearfar.simulation.link_fit import fit_link

    return fit_link(device, measured, name)


@_public
def import_profile(
    files: Sequence[Path], name: str, tool: OtherTool | None = None, nodes: str = "0:0"
) -> Profile:
    """Make a device profile from outputs of Mess (memory_curves.csv), Intel MLC and STREAM.

    ``nodes``: NUMA nodes of processor and memory, for outputs of MLC. Raises BadInputError for a
    file that is none of these, or is damaged.
    """
    from nearfar.workflows import profile_files

    return profile_files.import_profile(files, name, tool, nodes)


@_public
def list_profiles() -> list[ListedProfile]:
    """List device profiles and hosts: those that are shipped, and hosts measured by this user."""
    from nearfar.profiles import listing

    return listing.listed()


@_public
def write_profile(profile: Profile, file: Path) -> Path:
    """Write a device profile to a new file, and return its path. Raises BadInputError if it
    exists."""
    from nearfar.workflows import profile_files

    return profile_files.write_new_profile(profile, file)


@_public
def export_device(name_or_path: str, file: Path | None = None) -> Path:
    """Write the figures of a device profile to a new file that the C API for co-simulation reads.

    ``file``: by default NAME.device. Returns its path. Raises BadInputError if it exists, or if the
    profile has too few figures to be simulated.
    """
    from nearfar.profiles import load_profile
    from nearfar.workflows import profile_files

    profile = load_profile(name_or_path)
    return profile_files.export_device(profile, file or Path(f"{profile.name}.device"))


@_public
def compare(*sides: str, threshold: float = 0.05) -> Verdict:
    """Compare the last side with the others; ``worse`` says whether a figure got worse.

    Sides: runs, profiles, hosts or JSON documents of the same kind, by name or path.
    ``threshold``: the largest accepted degradation, as a fraction.
    """
    from nearfar.workflows import comparing

    return comparing.compare(sides, threshold)


@_public
def compare_variants(
    program: Sequence[str],
    variants: Sequence[str],
    tiers: Sequence[str],
    *,
    runs: int | None = None,
    progress: ProgressSource = silent,
) -> VariantsResult:
    """Run a program with its data in several places, in turns, and compare its times.

    ``variants``: ``all-near``, ``all-far``, ``kernel`` (its NUMA balancing in tiering mode, with
    demotion; needs root) and paths of plans; the first is what the others are compared with.
    ``tiers``: such as ``far=numa:1``; near is ``dram`` by default. Raises BadInputError if the
    program fails.
    """
    from nearfar.place.preload import parse_tiers
    from nearfar.workflows import variants as workflow

    with progress() as receiver:
        return workflow.compare_variants(
            program,
            variants,
            parse_tiers(tiers),
            receiver,
            runs=runs or workflow.DEFAULT_RUNS,
        )


@_public
def predict_contention(
    model: str | Path, near_threads: int, far_threads: int, *, mixed: bool = False
) -> ContentionPrediction:
    """Predict the bandwidth of two sides that copy concurrently.

    ``model``: a file of ``nearfar fit contention``. ``mixed``: far threads copy between both tiers.
    """
    from nearfar.workflows import predicting

    return predicting.contention(Path(model), near_threads, far_threads, mixed=mixed)


@_public
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


@_public
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


@_public
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


@_public
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


@_public
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


def _bytes(size: int | str | None) -> int | None:
    return parse_size(size) if isinstance(size, str) else size
