"""A program observed under the emulator: timed natively, then traced access by access."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.noise import Watch
from nearfar.place.costing import Coster
from nearfar.place.memory_costs import Memory, core_of
from nearfar.place.native_run import NativeRun, run_natively
from nearfar.place.traced import MAX_RECORDS, read_trace
from nearfar.place.uncertainty import LossFactors, slowdowns
from nearfar.records.advice import ObservedProgram
from nearfar.records.choices import DEFAULT_TIER
from nearfar.records.figures import Origin, Provenance
from nearfar.sampling.run import PERIOD_NS, sample_program
from nearfar.workflows import advice_notes
from nearfar.workflows.emulated_times import KernelTime, ProgramRuns
from nearfar.workflows.host_here import host_for
from nearfar.workflows.memories import tier_profile
from nearfar.workflows.observation import (
    AdviceRequest,
    NearMemory,
    NearOf,
    Observation,
    near_heap_environment,
    refuse_failure,
    tiers_of,
)

if TYPE_CHECKING:
    from nearfar.records.profile import Host
    from nearfar.tracing.recording import Recorded
    from nearfar.workflows.recording import Recording

#: Name of the trace in the folder of a record.
TRACE = "trace"
#: The default memory on small pages: each first touch is one page fault, which the kernel counts.
SMALL_PAGES = f"{DEFAULT_TIER},pages=4k"
#: Bytes of a program's name that the kernel keeps.
_NAME_LENGTH = 15
#: Fraction of CPU time in untraced programs above which no advice is given.
MAX_UNSEEN_SHARE = 0.25
_EVERY_ADDRESS = Provenance(
    origin=Origin.SIMULATED, statistic="count", samples=0, note="the emulator sees every address"
)


def observe(request: AdviceRequest, recording: Recording, near_of: NearOf) -> Observation:
    """Run the program natively, then trace it."""
    progress = recording.session.progress
    watch = Watch("the program as it is", section="advice")
    progress.step("running the program as it is", 0.0)
    natives = _natively(request)
    recording.session.noise.judge(watch)
    disturbed = watch.verdict().noisy
    progress.step("measuring this machine", 0.1)
    tiers = tiers_of(request)
    # A second native run had its heap on the default tier (see _natively).
    with_default = [DEFAULT_TIER] if len(natives) > 1 else []
    host = host_for(request.host, recording.session, [*tiers, *with_default])
    near = near_of(host, natives[0].resident_bytes)
    progress.step("tracing the program", 0.2)
    runs = _trace(request, recording.directory.path / TRACE, host, natives)
    progress.step("weighing placements", 0.8)
    return replace(_observation(runs, near, recording.machine.id), disturbed=disturbed)


def _observation(runs: ProgramRuns, near: NearMemory, machine: str) -> Observation:
    cpu_s = _cpu_s(runs, near.run_memory)
    coster, misfit = _coster(runs, near, cpu_s)
    times = near.times(runs.native.time_s, cpu_s, coster.near_time_ns)
    return Observation(
        data=runs.traced,
        coster=coster,
        variants=partial(slowdowns, coster),
        near=near,
        time_s=times[0],
        cpu_s=times[1],
        resident_bytes=runs.native.resident_bytes,
        host=runs.host,
        caches=runs.caches,
        loss=_loss_factors(runs),
        fields={
            "method": "emulated",
            "programs": runs.programs,
            "unseen_share": runs.unseen_share,
            "traced_time_s": runs.traced_time_s,
            "records": runs.traced.records,
            "sampled_share": 1 / coster.every,
            **near.fields(runs.native.time_s, cpu_s),
        },
        provenance=_provenance(runs, machine, near),
        limits=advice_notes.emulated_limits(),
        warnings=[
            *advice_notes.emulated_notes(runs, misfit, coster.work.chained),
            *advice_notes.on_evaluated_blocks(coster.every),
        ],
    )


def _natively(request: AdviceRequest) -> list[NativeRun]:
    """Run the program untraced with its heap on near memory.

    If near memory is not the default tier, also run it with the default heap. Raises BadInputError
    if the program fails.
    """
    near_heap = near_heap_environment(request)
    native = run_natively(request.program, request.time_s, near_heap, request.stdin.path)
    if native.ended and native.code:
        refuse_failure(request, native.code, request.stdin.role)
    if near_heap is None:
        return [native]
    plain = run_natively(request.program, request.time_s, stdin=request.stdin.path)
    # If kernel time dominates, the split into user and kernel time is imprecise. Larger pages never
    # slow user code, so use the smaller user time.
    user_s = min(native.user_s, plain.user_s)
    return [replace(native, user_s=user_s, cpu_s=user_s + native.system_s), plain]


def _trace(
    request: AdviceRequest, trace: Path, host: Host, natives: list[NativeRun]
) -> ProgramRuns:
    from nearfar.tracing.caches import caches_of
    from nearfar.tracing.recording import record

    native = natives[0]
    caches = caches_of(host, {"llc": request.host.llc})
    begin = time.monotonic()
    recorded = record(
        request.program,
        trace,
        caches,
        host=host.name,
        after=caches.last,
        prefetch=True,
        alone=True,
        max_records=MAX_RECORDS,
        limit_s=request.time_s,
        other_llcs=caches.ends,
        stdin=request.stdin.path,
    )
    elapsed = time.monotonic() - begin
    if recorded.code and not recorded.cut and recorded.code != native.code:
        refuse_failure(request, recorded.code, "under the emulator")
    _refuse_unseen(request, recorded.unseen_share(native.cpu_s))
    kernel = None
    if len(natives) > 1:
        touch_ns = tier_profile(host, SMALL_PAGES, 0).scalar("first_touch_ns")
        kernel = KernelTime(natives[1].system_s, touch_ns)
    traced = read_trace(trace, recorded.collected)
    programs = _programs(request, recorded)
    return ProgramRuns(native, kernel, recorded, traced, host, caches, elapsed, programs)


def _programs(request: AdviceRequest, recorded: Recorded) -> list[ObservedProgram]:
    """The traced programs with their instructions, and their fractions of the CPU time if there are
    several.

    The fractions are sampled in one more native run, because an emulator slows down each program by
    another factor.
    """
    traced = recorded.programs()
    shares: dict[str, float] = defaultdict(float)
    if len(traced) > 1:
        sampled = sample_program(
            request.program, None, request.stdin.path, request.time_s, PERIOD_NS
        )
        total = sum(count for _, count in sampled.programs) or 1
        for name, count in sampled.programs:
            shares[_file_name(name)] += count / total
    found = []
    for path, instructions in traced:
        name = Path(path).name
        share = shares.get(name, shares.get(name[:_NAME_LENGTH]))
        found.append(ObservedProgram(path=path, instructions=instructions, cpu_share=share))
    return sorted(found, key=lambda each: -(each.cpu_share or 0.0))


def _file_name(name: str) -> str:
    """The name of the file behind a program's name, which may be a symbolic link on the PATH."""
    found = shutil.which(name)
    return Path(found).resolve().name if found else name


def _refuse_unseen(request: AdviceRequest, share: float) -> None:
    if share <= MAX_UNSEEN_SHARE:
        return
    raise BadInputError(
        f"{share:.0%} of the CPU time of {request.program[0]} goes to programs that it starts "
        "(exec) and that cannot be traced: no advice on so little of the run",
        "name the program that does the work after --; it must run as this user, on 64-bit x86",
    )


def _loss_factors(runs: ProgramRuns) -> LossFactors:
    """Factors by which the time lost in far memory is uncertain: because of the size of the last
    cache, and because of the spread of measured CPU times."""
    totals = runs.recorded.collected["totals"]
    misses = totals["llc_misses"] if runs.caches.llc else totals["l2_misses"]
    others = runs.recorded.collected["other_misses"]
    by_cache = LossFactors.of([other / misses for other in others] if misses else [])
    native = runs.native
    times = [time_s for time_s in (native.cpu_min_s, native.cpu_median_s) if time_s > 0]
    return by_cache.times(LossFactors.of([native.cpu_s / time_s for time_s in times]))


def _cpu_s(runs: ProgramRuns, run_memory: Memory) -> float:
    """CPU time of the traced part on the memory of the native run."""
    native = runs.native
    system_s = native.system_s
    if runs.kernel is not None:
        system_s = runs.kernel.with_heap_on(runs.traced, run_memory)
    return (native.user_s + system_s) * (1 - runs.unseen_share)


def _coster(runs: ProgramRuns, near: NearMemory, cpu_s: float) -> tuple[Coster, float]:
    """A calibrated Coster, and the ratio of modeled to measured time; 1.0 for a partial trace,
    which has no measured time."""
    coster = Coster(runs.traced, near.memory, core_of(near.run_profile), near.run_memory)
    if not runs.cut:
        return coster, coster.calibrate(runs.native.user_s * (1 - runs.unseen_share), cpu_s)
    coster.assume()  # typical times of instructions, as there is no measured time
    return coster, 1.0


def _provenance(runs: ProgramRuns, machine: str, near: NearMemory) -> dict[str, Provenance]:
    def measured(statistic: str, samples: int, note: str = "") -> Provenance:
        return Provenance(
            origin=Origin.MEASURED, statistic=statistic, samples=samples, machine=machine, note=note
        )

    native = runs.native
    wall = measured(
        "median",
        native.runs,
        f"wall time, untraced, less waits for a processor; the runs took {native.low_s:.3g} to "
        f"{native.high_s:.3g} s",
    )
    cpu = measured(
        "lower quartile",
        native.runs,
        "lower-quartile CPU time of untraced runs, without programs that cannot be traced;"
        " kernel time is adjusted to the near tier where the default tier differs",
    )
    return {
        **near.provenance((wall, cpu)),
        "traced_time_s": measured("mean", 1),
        "unseen_share": measured("count", native.runs),
        **dict.fromkeys(("unknown_share", "sampled_share"), _EVERY_ADDRESS),
    }
