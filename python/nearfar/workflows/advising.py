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
from nearfar.place.figures import Memory, core_of, memory_of, why_faster
from nearfar.place.labels import labels_of
from nearfar.place.native_run import NativeRun, check_program, run_natively
from nearfar.place.plan_file import plan_text
from nearfar.place.promise import HeapPromise
from nearfar.place.traced import BLOCK_RECORDS, MOST_RECORDS, ProgramTrace, read_trace
from nearfar.place.uncertainty import LossFactors
from nearfar.process.elf import ignores_preload
from nearfar.process.stdin import StandardInput
from nearfar.records.advice import AdviceResult, TracedProgram
from nearfar.records.shape import Origin, Provenance
from nearfar.tracing.recording import HOW_TO_INSTRUMENT
from nearfar.workflows import advice_basis
from nearfar.workflows.host_here import DEFAULT, HostChoice, host_for, memory_profile

if TYPE_CHECKING:
    from nearfar.records.profile import Host, Profile
    from nearfar.tracing.caches import Caches
    from nearfar.tracing.recording import Recorded
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Measured, Recording

#: The default memory on pages that the kernel counts one by one.
SMALL_PAGES = f"{DEFAULT},pages=4k"
#: Slowdown of tracing above which another recorder is recommended.
SLOW_TRACING_RATIO = 60.0
#: Fraction of CPU time in untraced programs above which no advice is given.
MAX_UNSEEN_SHARE = 0.25
#: Programs that are named.
MAX_NAMED_PROGRAMS = 6
#: A slowdown below it is explained; values between it and 1 are within the model's rounding.
FASTER_THAN_NEAR = 0.995


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


@dataclass(frozen=True)
class KernelTime:
    """A run with the heap on small pages, and the first-touch time of a small page."""

    system_s: float
    small_touch_ns: float

    def with_heap_on(self, traced: ProgramTrace, near: Memory) -> float:
        """Kernel time with the heap on near memory, in s.

        Computed from a run with small pages, because first touches of large pages can dominate
        kernel time and leave only noise after subtraction.
        """
        touched = traced.touched.large if near.large_pages else traced.touched.small
        heap = [site.number for site in traced.sites if site.kind == "heap"]
        small_s = sum(traced.touched.small[n] for n in heap) * self.small_touch_ns * 1e-9
        near_s = sum(touched[n] for n in heap) * near.touch * 1e-9
        return max(self.system_s - small_s, 0.0) + near_s


@dataclass(frozen=True)
class ProgramRuns:
    """The runs of the program."""

    native: NativeRun
    kernel: KernelTime | None
    recorded: Recorded
    traced: ProgramTrace
    host: Host
    caches: Caches
    traced_time_s: float

    @property
    def cut(self) -> bool:
        """Whether only a part of the run was traced."""
        return self.recorded.cut or not self.native.ended

    @property
    def unseen_share(self) -> float:
        """Fraction of the CPU time in untraced programs."""
        return self.recorded.unseen_share(self.native.cpu_s)


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
        fars=[each.advice for each in found],
        limits=_limits(),
        warnings=[
            *_warnings(seen, misfit, plan, coster.work.chained),
            *_on_sample(coster.every),
            *_faster(coster.near, memories, found),
        ],
    )
    _add_measured(result, seen, recording.machine.id)
    advice_basis.add(result, near, fars, memories, coster.near)
    result.standard_input = wanted.stdin.words
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


def _limits() -> list[str]:
    return [
        "misses are those of modelled caches under an emulator, without the kernel's own accesses",
        "threads are assumed not to wait for each other",
        "slowdowns are of CPU time; time spent waiting for files, devices or other programs is "
        "assumed not to change",
    ]


def _on_sample(every: int) -> list[str]:
    """A note on the sampling of a long run."""
    if every == 1:
        return []
    return [
        f"long run: placements and policies are computed from one in {every} blocks of "
        f"{BLOCK_RECORDS:,} lines, evenly spaced; reads and writes of sites are estimated from "
        "windows; caches, allocations and totals cover the whole run"
    ]


def _faster(near: Memory, memories: list[Memory], found: list[FarResult]) -> list[str]:
    """Why a placement or a policy is faster than all data near, if one is."""
    notes = []
    for far, each in zip(memories, found, strict=True):
        advice = each.advice
        least = min(
            advice.slowdown_all_far,
            advice.slowdown_heap_far,
            advice.slowdown_plan,
            *(point.slowdown for point in advice.curve),
            *(policy.slowdown for policy in advice.policies),
        )
        if least < FASTER_THAN_NEAR:
            notes.append(
                f"with {far.name} the run comes out faster than all near "
                f"({least:.3f}): {why_faster(near, far)}"
            )
    return notes


def _fractions(programs: list[tuple[str, int]]) -> str:
    """The programs that execute most, as in "cc1 97 %, as 2 %, 3 others"."""
    total = sum(count for _, count in programs) or 1
    most = [
        f"{Path(path).name} {count / total:.0%}" for path, count in programs[:MAX_NAMED_PROGRAMS]
    ]
    others = len(programs) - len(most)
    return ", ".join([*most, f"{others} others"] if others > 0 else most)


def _warnings(seen: ProgramRuns, misfit: float, plan: Path | None, chained: float) -> list[str]:
    notes = list(seen.recorded.notes)
    native = seen.native
    collected = seen.recorded.collected
    if native.ended and native.code:
        notes.append(f"the program exited with {native.code}: this advice is for a failed run")
    if collected["executed"]:
        notes.append(
            f"{seen.unseen_share:.0%} of the CPU time was in child programs that cannot be "
            "traced: the figures cover the rest"
        )
    if not native.ended:
        notes.append(
            "the program reached the time limit and was stopped: the result covers the part that "
            "ran; raise --time to cover more"
        )
    if seen.cut:
        notes.append(
            "the trace stopped at the time limit: later accesses are missing, and instruction time "
            "is assumed"
        )
    if collected["processes"] > 1:
        notes.append(
            f"{collected['processes']} processes were traced as one program, in fractions of the "
            f"instructions: {_fractions(seen.recorded.programs())}"
        )
    if plan is None:
        notes.append(
            "no allocation site was seen: no plan can move any of its memory, and none was written"
        )
    if chained:
        notes.append(
            "the run took longer than its instructions explain; to match its time, "
            f"{chained:.0%} of the loads with no known address dependence are assumed to wait for "
            "the previous load"
        )
    if misfit > 1.02:
        notes.append(
            f"the modeled misses alone take {misfit:.2f} times the measured time: the real caches "
            "are larger than reported, or more misses overlap"
        )
    if seen.traced_time_s > SLOW_TRACING_RATIO * native.time_s:
        notes.append(
            f"tracing took {seen.traced_time_s / native.time_s:.0f} times as long as the program: "
            f"to trace it faster, {HOW_TO_INSTRUMENT}"
        )
    return notes
