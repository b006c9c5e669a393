"""What ``nearfar advise`` does, step by step: run, trace, cost, choose, write the plan."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.files import write_whole
from nearfar.noise import Watch
from nearfar.place.advising import Asked, Found, advise
from nearfar.place.costing import Coster
from nearfar.place.figures import Memory, core_of, memory_of, why_faster
from nearfar.place.labels import labels_of
from nearfar.place.native_run import NativeRun, check_program, run_natively
from nearfar.place.plan_file import plan_text
from nearfar.place.promise import HeapPromise
from nearfar.place.traced import BLOCK_RECORDS, MOST_RECORDS, Traced, read_trace
from nearfar.records.advice import AdviceResult
from nearfar.records.run import Skipped
from nearfar.records.shape import Origin, Provenance
from nearfar.units import format_size

if TYPE_CHECKING:
    from nearfar.cli.recording import Recording
    from nearfar.records.profile import Profile
    from nearfar.trace.caches import Caches
    from nearfar.trace.recording import Recorded

#: Of an emulated run over a native one, beyond which another way to trace is offered.
SLOW = 60.0
#: A slowdown below it is explained; what lies between it and 1 is within the model's rounding.
FASTER = 0.995


@dataclass(frozen=True)
class Wanted:
    """The command line, read."""

    program: tuple[str, ...]
    budget: int | None
    far: tuple[str, ...]
    near: str
    host: str
    time_s: float


@dataclass(frozen=True)
class Seen:
    """The program's runs."""

    native: NativeRun
    recorded: Recorded
    traced: Traced
    caches: Caches
    traced_time_s: float
    cut: bool  # stopped because its time was up


def run(wanted: Wanted, recording: Recording) -> tuple[AdviceResult, list[Skipped]]:
    """Advice, and what was left out. The plan is written beside the record."""
    check_program(wanted.program[0])
    show = recording.session.progress
    watch = Watch("the program as it is, and memory")
    show.step("running the program as it is", 0.0)
    native = run_natively(wanted.program, wanted.time_s)
    show.step("measuring near memory", 0.1)
    near = _memory(wanted.near, native.resident_bytes)
    fars = [_memory(name, native.resident_bytes) for name in wanted.far]
    recording.session.noise.judge(watch)
    show.step("tracing the program", 0.2)
    trace = recording.directory.path / "trace"
    try:
        seen = _trace(wanted, trace, native)
        show.step("weighing placements", 0.8)
        return _advise(wanted, recording, seen, near, fars)
    finally:
        trace.unlink(missing_ok=True)


def _memory(name: str, resident_bytes: int) -> Profile:
    """A device profile by name or path; else a tier of this machine, measured now."""
    from nearfar.measure.memory_here import memory_here
    from nearfar.profiles import load_profile, profile_names

    if name in profile_names() or name.endswith(".toml"):
        return load_profile(name)
    try:
        return memory_here(name, resident_bytes, min(os.sched_getaffinity(0)))
    except BadInputError as error:
        raise BadInputError(
            f"{name} is neither a device profile nor a tier: {error.what}",
            f"profiles are {', '.join(profile_names())}; tiers look like numa:1",
        ) from None


def _trace(wanted: Wanted, trace: Path, native: NativeRun) -> Seen:
    from nearfar.profiles import THIS, load_host
    from nearfar.trace.caches import caches_of
    from nearfar.trace.recording import record

    host = load_host(wanted.host)
    caches = caches_of(host, {})
    notes = _shrink_last(caches) if wanted.host == THIS else []
    begin = time.monotonic()
    with _stopped_after(wanted.time_s) as stopped:
        recorded = record(
            wanted.program, trace, caches, host=host.name, after=caches.last, prefetch=True,
            alone=True, most_records=MOST_RECORDS,
        )  # fmt: skip
    elapsed = time.monotonic() - begin
    recorded.notes += notes
    traced = read_trace(trace, recorded.collected)
    return Seen(native, recorded, traced, caches, elapsed, stopped.is_set())


def _shrink_last(caches: Caches) -> list[str]:
    """Takes the last cache for what a chase finds of it. Returns what to say of that."""
    from dataclasses import replace

    from nearfar.measure.memory_here import last_cache_here

    told = caches.llc
    if told is None:
        return []
    cpu = min(os.sched_getaffinity(0))
    found = last_cache_here(told.size_bytes, 2 * caches.l2.size_bytes, cpu)
    if found == told.size_bytes:
        return []
    caches.llc = replace(told, size_bytes=found) if found else None
    return [
        f"the last cache is told to hold {format_size(told.size_bytes)}, and a chase over as "
        f"much misses it: it is taken for {format_size(found) if found else 'none at all'}"
    ]


@contextmanager
def _stopped_after(limit_s: float) -> Iterator[threading.Event]:
    """Ends the traced program when its time is up: a signal to us is passed on to it."""
    stopped = threading.Event()
    us = threading.get_ident()

    def stop() -> None:
        stopped.set()
        signal.pthread_kill(us, signal.SIGTERM)

    timer = threading.Timer(limit_s, stop)
    timer.daemon = True
    timer.start()
    try:
        yield stopped
    finally:
        timer.cancel()


def _advise(
    wanted: Wanted, recording: Recording, seen: Seen, near: Profile, fars: list[Profile]
) -> tuple[AdviceResult, list[Skipped]]:
    traced = seen.traced
    coster, misfit = _coster(seen, near)
    labels = labels_of(traced.sites)
    asked = Asked(traced, coster, near, seen.native.time_s, wanted.budget, labels)
    memories = [memory_of(profile, coster.near) for profile in fars]
    found = [advise(asked, *pair) for pair in zip(memories, fars, strict=True)]
    plan = _write_plan(wanted, recording.directory.path, asked, found[0], seen.caches)
    first = found[0].advice
    result = AdviceResult(
        **dict(first),
        program=list(wanted.program),
        host=wanted.host,
        near=near.name,
        near_budget_bytes=wanted.budget,
        heap_bytes=traced.heap_peak_bytes,
        fixed_bytes=traced.fixed_bytes(),
        time_near_s=seen.native.time_s,
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
    return result, []


def _coster(seen: Seen, near: Profile) -> tuple[Coster, float]:
    """Set to the program's time, and model over measured time; of a cut trace no time is known."""
    coster = Coster(seen.traced, memory_of(near), core_of(near))
    if not seen.cut:
        return coster, coster.calibrate(seen.native.busy_s, seen.native.time_s)
    coster.assume()
    return coster, 1.0


def _add_measured(result: AdviceResult, seen: Seen, machine: str) -> None:
    native = seen.native
    result.intervals["time_near_s"] = (native.low_s, native.high_s)
    result.provenance["time_near_s"] = Provenance(
        origin=Origin.MEASURED, statistic="median", samples=native.runs, machine=machine,
        note="wall time, untraced, less waits for a processor; the interval is the range",
    )  # fmt: skip
    result.provenance["traced_time_s"] = Provenance(
        origin=Origin.MEASURED, statistic="mean", samples=1, machine=machine
    )


def _write_plan(
    wanted: Wanted, folder: Path, asked: Asked, found: Found, caches: Caches
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
        asked.traced.sites, found.point.near, found.gains, heap, asked.labels, wanted.program
    )
    path = folder / f"{Path(wanted.program[0]).name}.plan"
    write_whole(path, text, "name another folder with --out")
    return path


def _limits() -> list[str]:
    return [
        "misses are those of modelled caches under an emulator, without the kernel's own accesses",
        "threads are taken to wait for each other nowhere",
        "time that the program waits for files, devices or others is taken to stay as it is",
    ]


def _on_sample(every: int) -> list[str]:
    """What a long run was judged on."""
    if every == 1:
        return []
    return [
        f"this is a long run: placements and policies are judged on one in {every} stretches of "
        f"{BLOCK_RECORDS:,} lines, at even distances, and reads and writes of sites are counted on "
        "stretches; caches, allocations, and what was counted in all had the whole run"
    ]


def _faster(near: Memory, memories: list[Memory], found: list[Found]) -> list[str]:
    """Why a placement or a policy beats all data near, where one does."""
    told = []
    for far, each in zip(memories, found, strict=True):
        advice = each.advice
        least = min(
            advice.slowdown_all_far, advice.slowdown_heap_far, advice.slowdown_plan,
            *(point.slowdown for point in advice.curve),
            *(policy.slowdown for policy in advice.policies),
        )  # fmt: skip
        if least < FASTER:
            told.append(f"with {far.name} the run comes out faster than all near "
                        f"({least:.3f}): {why_faster(near, far)}")  # fmt: skip
    return told


def _warnings(seen: Seen, misfit: float, plan: Path | None, chained: float) -> list[str]:
    told = [note.removeprefix("nearfar: ") for note in seen.recorded.notes]
    native = seen.native
    collected = seen.recorded.collected
    if native.code:
        told.append(f"the program ends with {native.code}: this advice is on such a run")
    if collected["executed"]:
        told.append(
            "the time of programs that it started is in its time, what they did to memory is not: "
            "where a script or shim starts what you mean, name that instead"
        )
    if seen.cut:
        told.append("the trace was stopped when its time was up: what came later is not in it, and "
                    "how long its instructions take is assumed")  # fmt: skip
    if collected["processes"] > 1:
        told.append(f"{collected['processes']} processes were traced as one program")
    if plan is None:
        told.append("no allocation site was seen: no plan can move any of its memory, and none "
                    "was written")  # fmt: skip
    if chained:
        told.append(
            "the run took longer than its instructions plausibly do: waiting was deduced from its "
            f"time, {chained:.0%} of the loads whose address was not seen to be loaded are taken "
            "to wait for the load before"
        )
    if misfit > 1.02:
        told.append(
            f"the model's misses alone take {misfit:.2f} times as long as the program did: its "
            "caches hold more than the host tells, or its misses overlap more"
        )
    if seen.traced_time_s > SLOW * native.time_s:
        told.append(
            f"tracing took {seen.traced_time_s / native.time_s:.0f} times as long as the program: "
            "`nearfar trace --recorder instrumented` is faster where it can be compiled anew"
        )
    return told
