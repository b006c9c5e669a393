"""The steps of ``nearfar advise``: observe the program, cost, choose, write the plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.files import write_whole
from nearfar.model.interleave import parse_background
from nearfar.model.loaded_profile import ProfileUnderLoad, under_load
from nearfar.place.advising import AdviceInputs, FarResult, advise
from nearfar.place.figures import memory_of
from nearfar.place.labels import labels_of
from nearfar.place.native_run import check_program
from nearfar.place.plan_file import plan_text
from nearfar.place.promise import HeapPromise
from nearfar.process.names import program_name
from nearfar.process.running_process import RunningProcess
from nearfar.profiles import THIS, is_profile, load_host, load_profile
from nearfar.records.advice import AdviceResult
from nearfar.workflows import advice_basis, advice_notes, emulated_run, sampled_run
from nearfar.workflows.advice_fractions import add_fractions
from nearfar.workflows.advice_loads import MemoriesUnderLoad, Side
from nearfar.workflows.host_here import unused_latency
from nearfar.workflows.memories import check_tier, memory
from nearfar.workflows.observation import AdviceRequest, NearMemory, Observation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.records.profile import Host, Profile
    from nearfar.tracing.caches import Caches
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Measured, Recording


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
        "emulate": wanted.emulate,
        "pid": wanted.pid,
        "perf": wanted.perf,
        "background": list(wanted.background),
        "whole_sites": wanted.whole_sites,
    }
    with recorded("advise", arguments, options) as recording:
        result = run(wanted, recording)
        recording.keep("advice", result)
    return recording.measured(result)


def run(wanted: AdviceRequest, recording: Recording) -> AdviceResult:
    """Advice. The plan is written next to the record."""
    if wanted.program:
        check_program(wanted.program[0])
    if wanted.pid is not None:
        RunningProcess(wanted.pid).close()
    for name in (wanted.near, *wanted.far):
        if not is_profile(name):
            check_tier(name)

    _check_background(wanted)

    def near_of(host: Host, resident_bytes: int) -> NearMemory:
        near = _loaded(wanted, "near", memory(wanted.near, host, resident_bytes)).profile
        return NearMemory.of(wanted, near, host, resident_bytes)

    observe = emulated_run.observe if wanted.emulate else sampled_run.observe
    try:
        return _advise(wanted, recording, observe(wanted, recording, near_of))
    finally:
        (recording.directory.path / emulated_run.TRACE).unlink(missing_ok=True)


def _check_background(wanted: AdviceRequest) -> None:
    """Raise BadInputError for loads on memories without such figures, before anything runs."""
    for side in parse_background(wanted.background):
        names = [wanted.near] if side == "near" else wanted.far
        for name in names:
            if not is_profile(name):
                raise BadInputError(
                    f"--background {side} requires latencies under load, and {name} is a tier",
                    f"name a profile: --{side} FILE, such as the profile.toml of `nearfar probe`",
                )
            _loaded(wanted, side, load_profile(name))


def _loaded(wanted: AdviceRequest, side: str, profile: Profile) -> ProfileUnderLoad:
    """The memory under the background load of its side."""
    load = parse_background(wanted.background).get(side)
    return under_load(profile, load) if load is not None else ProfileUnderLoad(profile, ())


def _advise(wanted: AdviceRequest, recording: Recording, seen: Observation) -> AdviceResult:
    sides, loaded = _memories(wanted, seen)
    near, *fars = (each.profile for each in loaded)
    near_side, *far_sides = sides
    asked = _inputs(wanted, seen, near)
    memories = [memory_of(profile, seen.coster.near) for profile in fars]
    loaded_memories = MemoriesUnderLoad(wanted, seen, recording.session)
    if wanted.peaks:
        for side in sides:
            loaded_memories.measure(side)
    loads = [
        loaded_memories.load(asked, memory, near_side, side)
        for memory, side in zip(memories, far_sides, strict=True)
    ]
    whole = [
        advise(asked, memory, profile, run.load)
        for memory, profile, run in zip(memories, fars, loads, strict=True)
    ]
    found, limits = add_fractions(wanted, asked, whole, loads)
    counted_by = seen.caches if wanted.emulate else None
    pages = seen.coster.near.page_bytes, memories[0].page_bytes
    plan = _write_plan(wanted, recording.directory.path, asked, found[0], counted_by, pages)
    result = _result(wanted, seen, near, found, plan)
    result.limits += [*limits, *loaded_memories.notes]
    result.warnings = [
        *advice_notes.on_wrappers(found[0].advice),  # it limits the first sentence of the answer
        *result.warnings,
        *(text for each in loaded for text in each.notes),
        *_unused_latency(wanted),
        *advice_notes.on_plan(plan),
        *advice_notes.faster(seen.coster.near, memories, found),
    ]
    advice_basis.add(result, near, fars, memories, seen.near)
    advice_basis.add_peaks(
        result,
        loaded_memories.profile(near_side),
        [loaded_memories.profile(side) for side in far_sides],
    )
    advice_basis.add_host(result, seen.host, seen.caches)
    return result


def _unused_latency(wanted: AdviceRequest) -> list[str]:
    """A warning if the latency of the named host is unused, because near memory is a tier of this
    machine."""
    from nearfar.measure.memory import on_pages

    name, near = wanted.host.name, wanted.near
    if is_profile(near) or name == THIS or on_pages(near) in load_host(name).memories:
        return []
    return unused_latency(
        name,
        f"near memory is {near} of this machine, as measured; name another one with --near "
        f'PROFILE, or add a table [memories."{on_pages(near)}"] to the file of the host',
    )


def _memories(
    wanted: AdviceRequest, seen: Observation
) -> tuple[list[Side], list[ProfileUnderLoad]]:
    """Near memory, then the far ones: idle, and under their background loads."""
    names = [("near", wanted.near), *(("far", name) for name in wanted.far)]
    sides = [Side(side, name, memory(name, seen.host, seen.resident_bytes)) for side, name in names]
    return sides, [_loaded(wanted, side.side, side.profile) for side in sides]


def _result(
    wanted: AdviceRequest,
    seen: Observation,
    near: Profile,
    found: Sequence[FarResult],
    plan: Path | None,
) -> AdviceResult:
    """The record of the observed run and the advice on it."""
    result = AdviceResult(
        **dict(found[0].advice),
        **seen.fields,
        program=list(wanted.program) or [wanted.name()],
        host=wanted.host.name,
        near=near.name,
        near_budget_bytes=wanted.budget,
        movable_bytes=seen.data.movable_peak_bytes,
        fixed_bytes=seen.data.fixed_bytes(),
        time_near_s=seen.time_s,
        cpu_near_s=seen.cpu_s,
        plan=str(plan) if plan else None,
        standard_input=wanted.stdin.words,
        fars=[each.advice for each in found],
        limits=list(seen.limits),
        run_disturbed=seen.disturbed,
        warnings=list(seen.warnings),
    )
    result.provenance |= seen.provenance
    return result


def _inputs(wanted: AdviceRequest, seen: Observation, near: Profile) -> AdviceInputs:
    return AdviceInputs(
        seen.data,
        seen.coster,
        seen.variants,
        near,
        seen.time_s,
        seen.cpu_s,
        wanted.budget,
        labels_of(seen.data.sites),
        seen.loss,
    )


def _write_plan(
    wanted: AdviceRequest,
    folder: Path,
    asked: AdviceInputs,
    found: FarResult,
    counted_by: Caches | None,
    page_bytes: tuple[int, int],
) -> Path | None:
    """``counted_by``: caches whose misses were counted; None: reads and writes are estimates, which
    ``run --check`` cannot compare with counts. ``page_bytes``: of near and far memory."""
    if not asked.data.movable():
        return None
    advice = found.advice
    heap = HeapPromise(
        allocated_bytes=sum(
            site.allocated_bytes for site in asked.data.movable() if site.kind == "heap"
        ),
        peak_bytes=asked.data.movable_peak_bytes,
        near_bytes=advice.near_bytes,
        near_budget_bytes=wanted.budget,
        slowdown=advice.slowdown_plan,
        slowdown_all_far=advice.slowdown_all_far,
        near_page_bytes=page_bytes[0],
        far_page_bytes=page_bytes[1],
        caches=counted_by.line() if counted_by else None,
    )
    text = plan_text(
        asked.data.sites,
        found.placing,
        found.choices.gains,
        heap,
        asked.labels.at,
        wanted.program or [wanted.name()],
        attached=wanted.pid is not None,
    )
    path = folder / f"{_plan_name(wanted)}.plan"
    write_whole(path, text, "name another folder with --out")
    return path


def _plan_name(wanted: AdviceRequest) -> str:
    if wanted.pid is not None:
        return f"process-{wanted.pid}"
    if wanted.perf is not None:
        return Path(wanted.perf).name
    return program_name(wanted.program)
