"""Run programs: predict and place their memory, trace and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.api._common import public, size_in_bytes
from nearfar.measure.progress import silent
from nearfar.process.stdin import StandardInput
from nearfar.workflows.host_here import HostChoice
from nearfar.workflows.options import Options
from nearfar.workflows.tracing import CachesWanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.measure.progress import ProgressSource
    from nearfar.records.advice import AdviceResult
    from nearfar.records.choices import TraceRecorder
    from nearfar.records.placement import PlacementResult
    from nearfar.records.variants import VariantsResult
    from nearfar.workflows.recording import Measured
    from nearfar.workflows.tracing import Traced


@public
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
    under an emulator instead of sampling stalls. ``far``: device profiles or tiers; each gets
    advice of its own, the first also a plan. ``near``: a device profile or a tier. ``near_budget``:
    near memory for what a plan can move, in bytes or as ``256MiB``; default: the knee of the curve.
    ``time_s``: time limit of each run, in seconds. ``background``: traffic of other programs on
    near or far memory that is a profile, such as ``far=5GB/s``. ``whole_sites``: place no site on
    both memories. ``peaks``: also measure the bandwidth of all threads on tiers. ``host``: host
    whose caches are modeled; ``this`` is measured on first use. ``stdin``: empty by default.
    ``ignore_failure``: accept a nonzero exit code. ``result.plan`` is the file of the plan for
    ``nearfar run --plan``. Raises BadInputError, MachineError.
    """
    from nearfar.workflows import advising
    from nearfar.workflows.observation import AdviceRequest

    request = AdviceRequest(
        program=tuple(program),
        budget=size_in_bytes(near_budget),
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
    return advising.advise_program(request, options or Options())


@public
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

    ``plan``: a plan file; or None with ``revert``, which moves back the pages that the run with the
    record ``run`` moved, by default the newest run on process ``pid``. ``tiers``: such as
    ``far=numa:1``. Unless ``once``, returns when the program has ended, after ``time_s`` seconds,
    or on KeyboardInterrupt. ``rate_bytes_per_s``: None for no limit. ``shared``: also move pages
    that other processes map; requires CAP_SYS_NICE. Raises BadInputError, MachineError.
    """
    from nearfar.workflows import placing

    request = placing.PlaceRequest(
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
    return placing.place(request, options or Options())


@public
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
    default. ``aside``: redirect the program's standard output to standard error.
    """
    from nearfar.workflows import tracing

    return tracing.record(
        program, Path(output), caches or CachesWanted(), progress, recorder=recorder, aside=aside
    )


@public
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
