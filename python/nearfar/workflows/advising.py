"""The steps of ``nearfar advise``: observe the program, compute the cost of each site in far
memory, choose the sites to keep near, write the plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.files import write_whole
from nearfar.model.interleave import parse_background
from nearfar.model.loaded_profile import ProfileUnderLoad, under_load
from nearfar.place.advising import AdviceInputs, FarResult, advise
from nearfar.place.labels import labels_of
from nearfar.place.memory_costs import memory_of
from nearfar.place.plan_writer import plan_text
from nearfar.place.promise import PlanPromise
from nearfar.process.names import program_name
from nearfar.process.program_file import program_file
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

    from nearfar.place.memory_costs import Memory
    from nearfar.records.profile import Host, Profile
    from nearfar.workflows.advice_loads import Loaded
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Measured, Recording


def advise_program(request: AdviceRequest, options: Options) -> Measured[AdviceResult]:
    """Advice on a program, with its record."""
    from nearfar.workflows.recording import recorded

    request.require_subject()
    arguments = {
        "program": list(request.program),
        "near_budget": request.budget,
        "far": list(request.far),
        "near": request.near,
        "host": request.host.name,
        "llc": request.host.llc,
        "time_s": request.time_s,
        "ignore_failure": request.ignore_failure,
        "standard_input": request.stdin.words,
        "emulate": request.emulate,
        "pid": request.pid,
        "perf": request.perf,
        "background": list(request.background),
        "whole_sites": request.whole_sites,
    }
    with recorded("advise", arguments, options) as recording:
        result = run(request, recording)
        recording.keep("advice", result)
    return recording.measured(result)


def run(request: AdviceRequest, recording: Recording) -> AdviceResult:
    """Advice. The plan is written next to the record."""
    # Refuse what cannot be observed before the measurement; the results are not used.
    if request.program:
        program_file(request.program[0])
    if request.pid is not None:
        RunningProcess(request.pid).close()
    for name in (request.near, *request.far):
        if not is_profile(name):
            check_tier(name)

    _check_background(request)

    def near_of(host: Host, resident_bytes: int) -> NearMemory:
        near = _loaded(request, "near", memory(request.near, host, resident_bytes)).profile
        return NearMemory.of(request, near, host, resident_bytes)

    observe = emulated_run.observe if request.emulate else sampled_run.observe
    try:
        return _advise(request, recording, observe(request, recording, near_of))
    finally:  # only an emulated run has a trace
        (recording.directory.path / emulated_run.TRACE).unlink(missing_ok=True)


def _check_background(request: AdviceRequest) -> None:
    """Raise BadInputError for a load on a memory without latencies under load, before any run."""
    for side in parse_background(request.background):
        names = [request.near] if side == "near" else request.far
        for name in names:
            if not is_profile(name):
                raise BadInputError(
                    f"--background {side} requires latencies under load, and {name} is a tier",
                    f"name a profile: --{side} FILE, such as the profile.toml of `nearfar probe`",
                )
            _loaded(request, side, load_profile(name))  # raises


def _loaded(request: AdviceRequest, side: str, profile: Profile) -> ProfileUnderLoad:
    """The memory under the background load of its side."""
    load = parse_background(request.background).get(side)
    return under_load(profile, load) if load is not None else ProfileUnderLoad(profile, ())


def _advise(request: AdviceRequest, recording: Recording, observation: Observation) -> AdviceResult:
    sides, loaded = _memories(request, observation)
    near, *fars = (each.profile for each in loaded)
    near_side, *far_sides = sides
    inputs = _inputs(request, observation, near)
    memories = [memory_of(profile, observation.coster.near) for profile in fars]
    loaded_memories = MemoriesUnderLoad(request, observation, recording.session)
    for side in sides if request.peaks else ():
        loaded_memories.measure(side)
    loads = [
        loaded_memories.load(inputs, memory, near_side, side)
        for memory, side in zip(memories, far_sides, strict=True)
    ]
    found, limits = _placements(request, inputs, memories, fars, loads)
    plan = _write_plan(
        request, observation, recording.directory.path, inputs, found[0], memories[0]
    )
    result = _result(request, observation, near, found, plan)
    result.limits += [*limits, *loaded_memories.notes]
    result.warnings = [
        # First: hidden callers limit which sites the plan can name.
        *advice_notes.on_wrappers(found[0].advice),
        *result.warnings,
        *(text for each in loaded for text in each.notes),
        *_unused_latency(request),
        *advice_notes.on_plan(plan),
        *advice_notes.faster(observation.coster.near, memories, found),
    ]
    advice_basis.add(result, near, fars, memories, observation.near)
    near_loaded, *far_loaded = map(loaded_memories.profile, sides)
    advice_basis.add_peaks(result, near_loaded, far_loaded)
    advice_basis.add_host(result, observation.host, observation.caches)
    return result


def _placements(
    request: AdviceRequest,
    inputs: AdviceInputs,
    memories: Sequence[Memory],
    fars: Sequence[Profile],
    loads: list[Loaded],
) -> tuple[list[FarResult], list[str]]:
    """Placements for each far memory, with sites on both memories where that pays, and limits."""
    whole = [
        advise(inputs, memory, profile, loaded.load)
        for memory, profile, loaded in zip(memories, fars, loads, strict=True)
    ]
    return add_fractions(request, inputs, whole, loads)


def _unused_latency(request: AdviceRequest) -> list[str]:
    """A warning if the latency of the named host is unused, because near memory is a tier of this
    machine."""
    from nearfar.measure.memory import on_pages

    name, near = request.host.name, request.near
    if is_profile(near) or name == THIS or on_pages(near) in load_host(name).memories:
        return []
    return unused_latency(
        name,
        f"near memory is {near} of this machine, as measured; name another one with --near "
        f'PROFILE, or add a table [memories."{on_pages(near)}"] to the file of the host',
    )


def _memories(
    request: AdviceRequest, observation: Observation
) -> tuple[list[Side], list[ProfileUnderLoad]]:
    """Near memory, then the far ones: idle, and under their background loads."""
    names = [("near", request.near), *(("far", name) for name in request.far)]
    sides = [
        Side(side, name, memory(name, observation.host, observation.resident_bytes))
        for side, name in names
    ]
    return sides, [_loaded(request, side.role, side.profile) for side in sides]


def _result(
    request: AdviceRequest,
    observation: Observation,
    near: Profile,
    found: Sequence[FarResult],
    plan: Path | None,
) -> AdviceResult:
    """The record of the observed run and the advice on it."""
    result = AdviceResult(
        **dict(found[0].advice),
        **observation.fields,
        program=list(request.program) or [request.name()],
        host=request.host.name,
        near=near.name,
        near_budget_bytes=request.budget,
        movable_bytes=observation.data.movable_peak_bytes,
        fixed_bytes=observation.data.fixed_bytes(),
        time_near_s=observation.time_s,
        cpu_near_s=observation.cpu_s,
        plan=str(plan) if plan else None,
        standard_input=request.stdin.words,
        fars=[each.advice for each in found],
        limits=list(observation.limits),
        run_disturbed=observation.disturbed,
        warnings=list(observation.warnings),
    )
    result.provenance |= observation.provenance
    return result


def _inputs(request: AdviceRequest, observation: Observation, near: Profile) -> AdviceInputs:
    return AdviceInputs(
        observation.data,
        observation.coster,
        observation.variants,
        near,
        observation.time_s,
        observation.cpu_s,
        request.budget,
        labels_of(observation.data.sites),
        observation.loss,
    )


def _write_plan(
    request: AdviceRequest,
    observation: Observation,
    folder: Path,
    inputs: AdviceInputs,
    found: FarResult,
    memory: Memory,
) -> Path | None:
    """Write the plan for the far memory of ``found``. Returns None if no plan moves any data."""
    if not inputs.data.movable():
        return None
    advice = found.advice
    whole = PlanPromise(
        allocated_bytes=sum(
            site.allocated_bytes for site in inputs.data.movable() if site.kind == "heap"
        ),
        peak_bytes=inputs.data.movable_peak_bytes,
        near_bytes=advice.near_bytes,
        near_budget_bytes=request.budget,
        slowdown=advice.slowdown_plan,
        slowdown_all_far=advice.slowdown_all_far,
        near_page_bytes=observation.coster.near.page_bytes,
        far_page_bytes=memory.page_bytes,
        # Reads and writes of a sampled run are estimates, which `run --check` cannot compare.
        caches=observation.caches.line() if request.emulate else None,
    )
    text = plan_text(
        inputs.data.sites,
        found.placing,
        found.choices.gains,
        whole,
        inputs.labels.at,
        request.program or [request.name()],
        attached=request.pid is not None,
    )
    path = folder / f"{_plan_name(request)}.plan"
    write_whole(path, text, "name another folder with --out")
    return path


def _plan_name(request: AdviceRequest) -> str:
    if request.pid is not None:
        return f"process-{request.pid}"
    if request.perf is not None:
        return Path(request.perf).name
    return program_name(request.program)
