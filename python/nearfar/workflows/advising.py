"""The steps of ``nearfar advise``: run, trace, cost, choose, write the plan."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.files import write_whole
from nearfar.noise import Watch
from nearfar.place.advising import AdviceInputs, FarResult, advise
from nearfar.place.costing import Coster
from nearfar.place.figures import Memory, core_of, memory_of
from nearfar.place.labels import labels_of
from nearfar.place.native_run import NativeRun, check_program, run_natively
from nearfar.place.plan_file import plan_text
from nearfar.place.promise import HeapPromise
from nearfar.place.traced import MOST_RECORDS, read_trace
from nearfar.place.uncertainty import LossFactors
from nearfar.process.elf import ignores_preload
from nearfar.process.stdin import StandardInput
from nearfar.records.advice import AdviceResult, TracedProgram
from nearfar.records.shape import Origin, Provenance
from nearfar.workflows import advice_basis, advice_notes
from nearfar.workflows.host_here import DEFAULT, HostChoice, host_for, memory_profile
from nearfar.workflows.program_runs import KernelTime, ProgramRuns

if TYPE_CHECKING:
    from nearfar.records.profile import Host, Profile
    from nearfar.tracing.caches import Caches
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Measured, Recording

#: The default memory on pages that the kernel counts one by one.
SMALL_PAGES = f"{DEFAULT},pages=4k"
#: Fraction of CPU time in untraced programs above which no advice is given.
MAX_UNSEEN_SHARE = 0.25


@dataclass(frozen=True)
class AdviceRequest:
    """Parsed command line."""

    program: tuple[str, ...]
    budget: int | None
    far: tuple[str, ...]
    near: str
    host: HostChoice
    time_s: float
    ignore_failure: bool = False
    stdin: StandardInput = field(default_factory=StandardInput)


def advise_program(wanted: AdviceRequest, options: Options) -> Measured[AdviceResult]:
    """Advice on a program, with its record."""
    from nearfar.workflows.recording import recorded

    arguments = {
        "program": list(wanted.program),
        "near_budget": wanted.budget,
        "far": list(wanted.far),
        "near": wanted.near,
        "host": wanted.host.name,
        "llc": wanted.host.llc,
        "time_s": wanted.time_s,
        "ignore_failure": wanted.ignore_failure,
        "standard_input": wanted.stdin.words,
    }
    with recorded("advise", arguments, options) as recording:
        result = run(wanted, recording)
        recording.keep("advice", result)
    return recording.measured(result)


def run(wanted: AdviceRequest, recording: Recording) -> AdviceResult:
    """Advice. The plan is written next to the record."""
    check_program(wanted.program[0])
    show = recording.session.progress
    watch = Watch("the program as it is")
    names = [wanted.near, *wanted.far]
    tiers = [name for name in names if not _is_profile(name)]
    for name in tiers:
        _check_tier(name)
    show.step("running the program as it is", 0.0)
    natives = _natively(wanted)
    recording.session.noise.judge(watch)
    show.step("measuring this machine", 0.1)
    host = host_for(wanted.host, recording.session, [*tiers, *([DEFAULT] if natives[1:] else [])])
    near, *fars = (_memory(name, host, natives[0].resident_bytes) for name in names)
    show.step("tracing the program", 0.2)
    trace = recording.directory.path / "trace"
    try:
        seen = _trace(wanted, trace, host, natives)
        show.step("weighing placements", 0.8)
        return _advise(wanted, recording, seen, near, fars)
    finally:
        trace.unlink(missing_ok=True)


def _natively(wanted: AdviceRequest) -> list[NativeRun]:
    """Run the program untraced with its heap on near memory.

    If near memory is not the default tier, also run it with the default heap. Raises BadInputError
    if the program fails.
    """
    placed = _heap_near(wanted)
    native = run_natively(wanted.program, wanted.time_s, placed, wanted.stdin.path)
    if native.ended and native.code:
        given = wanted.stdin.path != os.devnull
        where = f"reading {wanted.stdin.words}" if given else "without standard input"
        _refuse_failure(wanted, native.code, where)
    if placed is None:
        return [native]
    plain = run_natively(wanted.program, wanted.time_s, stdin=wanted.stdin.path)
    # If kernel time dominates, the split into user and kernel time is imprecise. Larger pages never
    # slow user code, so use the smaller user time.
    user_s = min(native.user_s, plain.user_s)
    return [replace(native, user_s=user_s, cpu_s=user_s + native.system_s), plain]


def _refuse_failure(wanted: AdviceRequest, code: int, where: str) -> None:
    if wanted.ignore_failure:
        return
    raise BadInputError(
        f"{wanted.program[0]} failed with exit code {code}, {where}: no advice on a failed run",
        "fix its arguments, or accept the exit code with --ignore-failure",
    )


def _heap_near(wanted: AdviceRequest) -> dict[str, str] | None:
    """Variables that place the heap on a near tier other than its default."""
    from nearfar.place import preload

    near = wanted.near
    if _is_profile(near) or near == DEFAULT or ignores_preload(check_program(wanted.program[0])):
        return None
    variables = preload.environment(preload.Placement(None, {"near": near}), None)
    preload.check(variables)
    return variables


def _is_profile(name: str) -> bool:
    from nearfar.profiles import profile_names

    return name in profile_names() or name.endswith(".toml")


def _check_tier(name: str) -> None:
    """Raise BadInputError for a name that is neither a profile nor a tier, NativeError for a tier
    that this machine does not have."""
    from nearfar._native import NativeError, parse_tier, tier_capacity_bytes
    from nearfar.profiles import profile_names

    try:
        parse_tier(name)
    except NativeError as error:
        raise BadInputError(
            f"{name} is neither a device profile nor a tier: {error.args[1]}",
            f"profiles are {', '.join(profile_names())}; tiers look like numa:1",
        ) from None
    tier_capacity_bytes(name)


def _memory(name: str, host: Host, resident_bytes: int) -> Profile:
    """A device profile by name or path; else a tier of this machine, as measured."""
    from nearfar.profiles import load_profile

    if _is_profile(name):
        return load_profile(name)
    return memory_profile(host, name, resident_bytes)


def _trace(wanted: AdviceRequest, trace: Path, host: Host, natives: list[NativeRun]) -> ProgramRuns:
    from nearfar.tracing.caches import caches_of
    from nearfar.tracing.recording import record

    native = natives[0]
    caches = caches_of(host, {"llc": wanted.host.llc})
    begin = time.monotonic()
    recorded = record(
        wanted.program,
        trace,
        caches,
        host=host.name,
        after=caches.last,
        prefetch=True,
        alone=True,
        most_records=MOST_RECORDS,
        limit_s=wanted.time_s,
        other_llcs=caches.ends,
        stdin=wanted.stdin.path,
    )
    elapsed = time.monotonic() - begin
    if recorded.code and not recorded.cut and recorded.code != native.code:
        _refuse_failure(wanted, recorded.code, "under the emulator")
    _refuse_unseen(wanted, recorded.unseen_share(native.cpu_s))
    kernel = None
    if len(natives) > 1:
        touch_ns = memory_profile(host, SMALL_PAGES, 0).scalar("first_touch_ns")
        kernel = KernelTime(natives[1].system_s, touch_ns)
    traced = read_trace(trace, recorded.collected)
    return ProgramRuns(native, kernel, recorded, traced, host, caches, elapsed)


def _refuse_unseen(wanted: AdviceRequest, share: float) -> None:
    if share <= MAX_UNSEEN_SHARE:
        return
    raise BadInputError(
        f"{share:.0%} of the CPU time of {wanted.program[0]} goes to programs that it starts "
        "(exec) and that cannot be traced: no advice on so little of the run",
        "name the program that does the work after --; it must run as this user, on 64-bit x86",
    )


def _advise(
    wanted: AdviceRequest,
    recording: Recording,
    seen: ProgramRuns,
    near: Profile,
    fars: list[Profile],
) -> AdviceResult:
    traced = seen.traced
    cpu_s = _cpu_near_s(seen, memory_of(near))
    coster, misfit = _coster(seen, near, cpu_s)
    asked = AdviceInputs(
        traced,
        coster,
        near,
        seen.native.time_s,
        cpu_s,
        wanted.budget,
        labels_of(traced.sites),
        _loss_factors(seen),
    )
    memories = [memory_of(profile, coster.near) for profile in fars]
    found = [advise(asked, *pair) for pair in zip(memories, fars, strict=True)]
    plan = _write_plan(wanted, recording.directory.path, asked, found[0], seen.caches)
    first = found[0].advice
    result = AdviceResult(
        **dict(first),
        program=list(wanted.program),
        programs=[
            TracedProgram(path=path, instructions=count) for path, count in seen.recorded.programs()
        ],
        host=wanted.host.name,
        near=near.name,
        near_budget_bytes=wanted.budget,
        heap_bytes=traced.heap_peak_bytes,
        fixed_bytes=traced.fixed_bytes(),
        time_near_s=seen.native.time_s,
        cpu_near_s=cpu_s,
        unseen_share=seen.unseen_share,
        traced_time_s=seen.traced_time_s,
        records=traced.records,
        sampled_share=1 / coster.every,
        plan=str(plan) if plan else None,
        standard_input=wanted.stdin.words,
        fars=[each.advice for each in found],
        limits=advice_notes.limits(),
        warnings=[
            *advice_notes.warnings(seen, misfit, plan, coster.work.chained),
            *advice_notes.on_sample(coster.every),
            *advice_notes.faster(coster.near, memories, found),
        ],
    )
    _add_measured(result, seen, recording.machine.id)
    advice_basis.add(result, near, fars, memories, coster.near)
    advice_basis.add_host(result, seen.host, seen.caches)
    return result


def _loss_factors(seen: ProgramRuns) -> LossFactors:
    """Factors on the loss: from the uncertainty of the last cache's size, and from the spread of
    measured CPU times."""
    totals = seen.recorded.collected["totals"]
    misses = totals["llc_misses"] if seen.caches.llc else totals["l2_misses"]
    others = seen.recorded.collected["other_misses"]
    by_cache = LossFactors.of([other / misses for other in others] if misses else [])
    native = seen.native
    times = [time_s for time_s in (native.cpu_min_s, native.cpu_median_s) if time_s > 0]
    return by_cache.times(LossFactors.of([native.cpu_s / time_s for time_s in times]))


def _cpu_near_s(seen: ProgramRuns, near: Memory) -> float:
    """CPU time of the traced part with all data near."""
    native = seen.native
    system_s = native.system_s
    if seen.kernel is not None:
        system_s = seen.kernel.with_heap_on(seen.traced, near)
    return (native.user_s + system_s) * (1 - seen.unseen_share)


def _coster(seen: ProgramRuns, near: Profile, cpu_s: float) -> tuple[Coster, float]:
    """A calibrated Coster, and the ratio of modeled to measured time; 1.0 for a partial trace,
    which has no measured time."""
    coster = Coster(seen.traced, memory_of(near), core_of(near))
    if not seen.cut:
        return coster, coster.calibrate(seen.native.user_s * (1 - seen.unseen_share), cpu_s)
    coster.assume()
    return coster, 1.0


def _add_measured(result: AdviceResult, seen: ProgramRuns, machine: str) -> None:
    native = seen.native
    result.provenance["time_near_s"] = Provenance(
        origin=Origin.MEASURED,
        statistic="median",
        samples=native.runs,
        machine=machine,
        note="wall time, untraced, less waits for a processor; the runs took "
        f"{native.low_s:.3g} to {native.high_s:.3g} s",
    )
    result.provenance["cpu_near_s"] = Provenance(
        origin=Origin.MEASURED,
        statistic="lower quartile",
        samples=native.runs,
        machine=machine,
        note="lower-quartile CPU time of untraced runs, without programs that cannot be traced; "
        "kernel time is adjusted to the near tier where the default tier differs",
    )
    result.provenance["traced_time_s"] = Provenance(
        origin=Origin.MEASURED, statistic="mean", samples=1, machine=machine
    )


def _write_plan(
    wanted: AdviceRequest, folder: Path, asked: AdviceInputs, found: FarResult, caches: Caches
) -> Path | None:
    if not asked.traced.heap():
        return None
    advice = found.advice
    heap = HeapPromise(
        allocated_bytes=sum(site.allocated_bytes for site in asked.traced.heap()),
        peak_bytes=asked.traced.heap_peak_bytes,
        near_bytes=advice.near_bytes,
        near_budget_bytes=wanted.budget,
        slowdown=advice.slowdown_plan,
        slowdown_all_far=advice.slowdown_all_far,
        caches=caches.line(),
    )
    text = plan_text(
        asked.traced.sites, found.point.near, found.gains, heap, asked.labels.at, wanted.program
    )
    path = folder / f"{Path(wanted.program[0]).name}.plan"
    write_whole(path, text, "name another folder with --out")
    return path
