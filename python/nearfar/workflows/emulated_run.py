"""A program observed under the emulator: timed natively, then traced access by access."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.noise import Watch
from nearfar.place.costing import Coster
from nearfar.place.figures import Memory, core_of
from nearfar.place.native_run import NativeRun, run_natively
from nearfar.place.traced import MAX_RECORDS, read_trace
from nearfar.place.uncertainty import LossFactors, slowdowns
from nearfar.records.advice import ObservedProgram
from nearfar.records.choices import DEFAULT_TIER
from nearfar.records.shape import Origin, Provenance
from nearfar.sampling.run import PERIOD_NS, sample_program
from nearfar.workflows import advice_notes
from nearfar.workflows.emulated_times import KernelTime, ProgramRuns
from nearfar.workflows.host_here import host_for
from nearfar.workflows.memories import tier_profile
from nearfar.workflows.observation import (
    AdviceRequest,
    NearMemory,
    Observation,
    heap_near,
    refuse_failure,
    tiers_of,
)

if TYPE_CHECKING:
    from nearfar.records.profile import Host
    from nearfar.tracing.recording import Recorded
    from nearfar.workflows.recording import Recording

#: Name of the trace in the folder of a record.
TRACE = "trace"
#: The default memory on pages that the kernel counts one by one.
SMALL_PAGES = f"{DEFAULT_TIER},pages=4k"
#: Bytes of a program's name that the kernel keeps.
_NAME_LENGTH = 15
#: Fraction of CPU time in untraced programs above which no advice is given.
MAX_UNSEEN_SHARE = 0.25


def observe(
    wanted: AdviceRequest, recording: Recording, near_of: Callable[[Host, int], NearMemory]
) -> Observation:
    """Run the program natively, then trace it. ``near_of``: near memory on a host, for a program of
    this many resident bytes."""
    show = recording.session.progress
    watch = Watch("the program as it is", section="advice")
    show.step("running the program as it is", 0.0)
    natives = _natively(wanted)
    recording.session.noise.judge(watch)
    disturbed = watch.verdict().noisy
    show.step("measuring this machine", 0.1)
    tiers = tiers_of(wanted)
    host = host_for(
        wanted.host, recording.session, [*tiers, *([DEFAULT_TIER] if natives[1:] else [])]
    )
    near = near_of(host, natives[0].resident_bytes)
    show.step("tracing the program", 0.2)
    seen = _trace(wanted, recording.directory.path / TRACE, host, natives)
    show.step("weighing placements", 0.8)
    return replace(_observation(seen, near, recording.machine.id), disturbed=disturbed)


def _observation(seen: ProgramRuns, near: NearMemory, machine: str) -> Observation:
    cpu_s = _cpu_s(seen, near.here)
    coster, misfit = _coster(seen, near, cpu_s)
    times = near.times(seen.native.time_s, cpu_s, coster.near_time_ns)
    return Observation(
        data=seen.traced,
        coster=coster,
        variants=partial(slowdowns, coster),
        near=near,
        time_s=times[0],
        cpu_s=times[1],
        resident_bytes=seen.native.resident_bytes,
        host=seen.host,
        caches=seen.caches,
        loss=_loss_factors(seen),
        fields={
            "method": "emulated",
            "programs": seen.programs,
            "unseen_share": seen.unseen_share,
            "traced_time_s": seen.traced_time_s,
            "records": seen.traced.records,
            "sampled_share": 1 / coster.every,
            **near.fields(seen.native.time_s, cpu_s),
        },
        provenance=_provenance(seen, machine, near),
        limits=advice_notes.emulated_limits(),
        warnings=[
            *advice_notes.emulated(seen, misfit, coster.work.chained),
            *advice_notes.on_sample(coster.every),
        ],
    )


def _natively(wanted: AdviceRequest) -> list[NativeRun]:
    """Run the program untraced with its heap on near memory.

    If near memory is not the default tier, also run it with the default heap. Raises BadInputError
    if the program fails.
    """
    placed = heap_near(wanted)
    native = run_natively(wanted.program, wanted.time_s, placed, wanted.stdin.path)
    if native.ended and native.code:
        refuse_failure(wanted, native.code, wanted.stdin.role)
    if placed is None:
        return [native]
    plain = run_natively(wanted.program, wanted.time_s, stdin=wanted.stdin.path)
    # If kernel time dominates, the split into user and kernel time is imprecise. Larger pages never
    # slow user code, so use the smaller user time.
    user_s = min(native.user_s, plain.user_s)
    return [replace(native, user_s=user_s, cpu_s=user_s + native.system_s), plain]


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
        max_records=MAX_RECORDS,
        limit_s=wanted.time_s,
        other_llcs=caches.ends,
        stdin=wanted.stdin.path,
    )
    elapsed = time.monotonic() - begin
    if recorded.code and not recorded.cut and recorded.code != native.code:
        refuse_failure(wanted, recorded.code, "under the emulator")
    _refuse_unseen(wanted, recorded.unseen_share(native.cpu_s))
    kernel = None
    if len(natives) > 1:
        touch_ns = tier_profile(host, SMALL_PAGES, 0).scalar("first_touch_ns")
        kernel = KernelTime(natives[1].system_s, touch_ns)
    traced = read_trace(trace, recorded.collected)
    programs = _programs(wanted, recorded)
    return ProgramRuns(native, kernel, recorded, traced, host, caches, elapsed, programs)


def _programs(wanted: AdviceRequest, recorded: Recorded) -> list[ObservedProgram]:
    """The traced programs with their instructions; if there are several, also with their fractions
    of the CPU time of one more native run, which is sampled: an emulator slows them down unequally.
    """
    traced = recorded.programs()
    shares: dict[str, float] = defaultdict(float)
    if len(traced) > 1:
        sampled = sample_program(wanted.program, None, wanted.stdin.path, wanted.time_s, PERIOD_NS)
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


def _refuse_unseen(wanted: AdviceRequest, share: float) -> None:
    if share <= MAX_UNSEEN_SHARE:
        return
    raise BadInputError(
        f"{share:.0%} of the CPU time of {wanted.program[0]} goes to programs that it starts "
        "(exec) and that cannot be traced: no advice on so little of the run",
        "name the program that does the work after --; it must run as this user, on 64-bit x86",
    )


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


def _cpu_s(seen: ProgramRuns, here: Memory) -> float:
    """CPU time of the traced part on the memory of the native run."""
    native = seen.native
    system_s = native.system_s
    if seen.kernel is not None:
        system_s = seen.kernel.with_heap_on(seen.traced, here)
    return (native.user_s + system_s) * (1 - seen.unseen_share)


def _coster(seen: ProgramRuns, near: NearMemory, cpu_s: float) -> tuple[Coster, float]:
    """A calibrated Coster, and the ratio of modeled to measured time; 1.0 for a partial trace,
    which has no measured time."""
    coster = Coster(seen.traced, near.memory, core_of(near.here_profile), near.here)
    if not seen.cut:
        return coster, coster.calibrate(seen.native.user_s * (1 - seen.unseen_share), cpu_s)
    coster.assume()
    return coster, 1.0


def _provenance(seen: ProgramRuns, machine: str, near: NearMemory) -> dict[str, Provenance]:
    native = seen.native
    wall = Provenance(
        origin=Origin.MEASURED,
        statistic="median",
        samples=native.runs,
        machine=machine,
        note="wall time, untraced, less waits for a processor; the runs took "
        f"{native.low_s:.3g} to {native.high_s:.3g} s",
    )
    cpu = Provenance(
        origin=Origin.MEASURED,
        statistic="lower quartile",
        samples=native.runs,
        machine=machine,
        note="lower-quartile CPU time of untraced runs, without programs that cannot be traced;"
        " kernel time is adjusted to the near tier where the default tier differs",
    )
    return {
        **near.provenance((wall, cpu)),
        "traced_time_s": Provenance(
            origin=Origin.MEASURED, statistic="mean", samples=1, machine=machine
        ),
        "unseen_share": Provenance(
            origin=Origin.MEASURED, statistic="count", samples=native.runs, machine=machine
        ),
        **dict.fromkeys(
            ("unknown_share", "sampled_share"),
            Provenance(
                origin=Origin.SIMULATED,
                statistic="count",
                samples=0,
                note="the emulator sees every address",
            ),
        ),
    }
