"""A program observed natively: its stalls sampled from outside while it runs at full speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.noise import Watch
from nearfar.place.hardware_samples import has_hardware_samples, read_hardware_samples
from nearfar.place.kernel_time import first_touches_ns, with_observed_touches
from nearfar.place.memory_costs import Memory
from nearfar.place.program_data import PAGE_BYTES
from nearfar.place.sample_records import ordered_samples
from nearfar.place.sampled_costing import L2_NS, L3_NS, CacheSizes, SampledCoster
from nearfar.place.sampled_sizes import PageFaults
from nearfar.place.samples import ProgramSamples, read_samples
from nearfar.process.elf import ignores_preload
from nearfar.process.program_file import program_file
from nearfar.records.advice import ObservedProgram
from nearfar.records.figures import Origin, Provenance
from nearfar.sampling.recorded import read_recorded
from nearfar.sampling.run import (
    MAX_COST,
    MIN_SAMPLES,
    PERIOD_NS,
    REFUSED,
    UNREACHED,
    Sampled,
    period_for,
    sample_process,
    sample_program,
)
from nearfar.units import format_time
from nearfar.workflows import advice_notes
from nearfar.workflows.host_here import host_for
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
    from nearfar.tracing.caches import Caches
    from nearfar.workflows.recording import Recording


def observe(request: AdviceRequest, recording: Recording, near_of: NearOf) -> Observation:
    """Sample the program or the process, or read the file."""
    from nearfar.tracing.caches import caches_of

    progress = recording.session.progress
    progress.step("sampling the program" if request.perf is None else "reading the file", 0.0)
    sampled, disturbed = _sample_watched(request, recording)
    progress.step("measuring this machine", 0.6)
    host = host_for(request.host, recording.session, tiers_of(request))
    near = near_of(host, sampled.resident_bytes)
    progress.step("weighing placements", 0.8)
    has_hardware = request.perf is not None and has_hardware_samples(sampled.sampler)
    data = _data(request, sampled, host, near.run_memory, has_hardware=has_hardware)
    near = _with_observed_touches(request, sampled, data, near)
    caches = caches_of(host, {"llc": request.host.llc})
    coster = SampledCoster(data, near.memory, _sizes(host, caches), sampled.cpu_s, near.run_memory)
    time_s, cpu_near_s = near.times(sampled.wall_s, sampled.cpu_s, coster.near_time_ns)
    return Observation(
        data=coster.counted(),
        coster=coster,
        variants=coster.slowdowns,
        near=near,
        time_s=time_s,
        cpu_s=cpu_near_s,
        resident_bytes=sampled.resident_bytes,
        host=host,
        caches=caches,
        fields=_fields(request, sampled, data) | near.fields(sampled.wall_s, sampled.cpu_s),
        provenance=_provenance(request, sampled, recording.machine.id, near, data.samples),
        limits=advice_notes.sampled_limits(sampled, has_hardware=has_hardware),
        warnings=advice_notes.sampled_notes(sampled, data),
        disturbed=disturbed,
    )


def _sample_watched(request: AdviceRequest, recording: Recording) -> tuple[Sampled, bool]:
    """The samples, and whether other programs ran meanwhile."""
    watch = Watch("the program", section="advice")
    if request.pid is not None:
        recording.session.progress.note(
            f"sampling process {request.pid} for {format_time(request.time_s)}; it is not stopped"
        )
    sampled = _sample(request)
    if request.pid is not None:
        watch.observed(sampled.cpu_s)
    if request.perf is not None:
        return sampled, False
    recording.session.noise.judge(watch)
    return sampled, watch.verdict().noisy


def _data(
    request: AdviceRequest, sampled: Sampled, host: Host, run_memory: Memory, *, has_hardware: bool
) -> ProgramSamples:
    """The samples by allocation site. ``run_memory``: the memory that the program ran on;
    ``has_hardware``: hardware sampled the misses."""
    from nearfar.measure.memory import large_pages_everywhere

    faults = PageFaults(
        sampled.page_faults,
        run_memory.large_pages,
        everywhere_large=request.perf is None and large_pages_everywhere(),
    )
    data = (
        _hardware_data(request, sampled, host, faults)
        if has_hardware
        else read_samples(
            sampled.sampler,
            sampled.user_s,
            sampled.period_ns,
            faults,
            sampled.resident,
            whole_sites=request.whole_sites,
        )
    )
    if data.samples < MIN_SAMPLES:
        raise _too_few(request, sampled)
    return data


def _with_observed_touches(
    request: AdviceRequest, sampled: Sampled, data: ProgramSamples, near: NearMemory
) -> NearMemory:
    """Near memory with first touches as they were in the run, if all page faults were sampled."""
    if request.perf is not None or request.pid is not None or sampled.by_signals:
        return near
    samples = ordered_samples(sampled.sampler)
    share = sampled.sampler.enabled_share()
    touches_ns = first_touches_ns(samples, sampled.period_ns, sampled.system_s, share)
    return near.with_run_memory(with_observed_touches(near.run_memory, data.touched, touches_ns))


def _too_few(request: AdviceRequest, sampled: Sampled) -> BadInputError:
    used = f"{request.name()} used {sampled.user_s:.2g} s of CPU time"
    if request.program:
        used += f", {request.stdin.role}"
    if sampled.by_signals and sampled.user_s * 1e9 > MIN_SAMPLES * sampled.period_ns:
        return BadInputError(
            f"{used}, and was not sampled: {REFUSED}, and {UNREACHED}",
            "set kernel.perf_event_paranoid to at most 2, permit perf_event_open in the "
            "container, or trace every access with --emulate",
        )
    more = "give it more work, or more --time"
    if request.program:
        more += ", or trace every access with --emulate"
    return BadInputError(f"{used}: too little to sample", more)


def _hardware_data(
    request: AdviceRequest, sampled: Sampled, host: Host, faults: PageFaults
) -> ProgramSamples:
    frequency = host.figures.get("frequency_hz")
    if frequency is None or not frequency.value:
        raise BadInputError(
            f"host {host.name} has no frequency_hz, by which sampled cycles become ns",
            "add the figure to the host's file, or name another host with --host",
        )
    return read_hardware_samples(
        sampled.sampler, sampled.user_s, frequency.value, faults, whole_sites=request.whole_sites
    )


def _sample(request: AdviceRequest) -> Sampled:
    if request.perf is not None:
        return read_recorded(request.perf)
    if request.pid is not None:
        return sample_process(request.pid, request.time_s)
    why_unlogged = ignores_preload(program_file(request.program[0]))
    found = _sample_once(request, PERIOD_NS, MAX_COST)
    # A short program has too few samples. It is run once more with a shorter period and without
    # pauses, which slows it down: its times remain those of the first run, its samples are only
    # those of the second.
    if period_for(found.user_s) < PERIOD_NS and found.ended and not found.by_signals:
        found = _sample_once(request, period_for(found.user_s)).with_times_of(found)
    if why_unlogged:
        found.notes.append(f"{why_unlogged}: its heap has no allocation sites")
    return found


def _sample_once(request: AdviceRequest, period_ns: int, max_cost: float = 0.0) -> Sampled:
    """``max_cost``: fraction of the CPU time that samples may take; 0: any."""
    from nearfar.measure.memory import large_pages_everywhere, page_bytes

    near_heap = near_heap_environment(request)
    on_large = near_heap is not None and page_bytes(request.near) > PAGE_BYTES
    found = sample_program(
        request.program,
        near_heap,
        request.stdin.path,
        request.time_s,
        period_ns,
        large_pages=on_large or large_pages_everywhere(),
        max_cost=max_cost,
    )
    if found.code and found.ended:
        refuse_failure(request, found.code, request.stdin.role)
    return found


def _sizes(host: Host, caches: Caches) -> CacheSizes:
    ends = tuple(level.size_bytes for level in caches.ends)

    def hit_ns(key: str, otherwise: float) -> float:
        figure = host.figures.get(key)
        return figure.value if figure is not None and figure.value else otherwise

    return CacheSizes(
        caches.l2.size_bytes,
        caches.llc.size_bytes if caches.llc else caches.l2.size_bytes,
        ends,
        hit_ns("l2_load_ns", L2_NS),
        hit_ns("l3_load_ns", L3_NS),
    )


def _fields(request: AdviceRequest, sampled: Sampled, data: ProgramSamples) -> dict[str, object]:
    total = sum(count for _, count in sampled.programs) or 1
    return {
        "method": "sampled",
        "programs": [
            ObservedProgram(path=name, cpu_share=count / total) for name, count in sampled.programs
        ],
        "samples": data.samples,
        "unknown_share": data.unknown_share,
        "sampling_period_s": sampled.period_ns * 1e-9 or None,
        "sampling_share": sampled.sampler.enabled_share() if request.perf is None else None,
        "pid": sampled.pid,
        "perf": request.perf,
    }


def _provenance(
    request: AdviceRequest, sampled: Sampled, machine: str, near: NearMemory, samples: int
) -> dict[str, Provenance]:
    shares = _shares_provenance(samples)
    if request.perf is not None:
        return _recorded_provenance(sampled) | shares
    wall, cpu = (
        Provenance(origin=Origin.MEASURED, statistic="mean", samples=1, machine=machine, note=note)
        for note in (
            "wall time while it was sampled",
            "CPU time of the program and its children while they were sampled",
        )
    )
    return {
        "sampling_period_s": Provenance(
            origin=Origin.CLAIMED,
            statistic="claim",
            samples=0,
            machine=machine,
            note="requested of the kernel's clock",
        ),
        "sampling_share": Provenance(
            origin=Origin.MEASURED,
            statistic="mean",
            samples=max(len(sampled.sampler.bursts()), 1),
            machine=machine,
            note="time in which the clock was enabled, over that of the run",
        ),
        **near.provenance((wall, cpu)),
        **shares,
    }


def _shares_provenance(samples: int) -> dict[str, Provenance]:
    """Provenance of figures that are fractions of the samples."""
    counted = Provenance(
        origin=Origin.MEASURED,
        statistic="count",
        samples=samples,
        note="of the samples, which are of all programs that it started, too",
    )
    return dict.fromkeys(("unseen_share", "unknown_share"), counted)


def _recorded_provenance(sampled: Sampled) -> dict[str, Provenance]:
    def measured(note: str) -> Provenance:
        return Provenance(origin=Origin.MEASURED, statistic="mean", samples=1, note=note)

    cpu = measured("user CPU time by the samples of the clock in the file")
    if not sampled.period_ns:
        note = "the threads in the file, each from the first sample to the last"
        cpu = Provenance(origin=Origin.MODELLED, statistic="model", samples=0, note=note)
    wall = measured("from the first sample in the file to the last")
    return {"time_near_s": wall, "cpu_near_s": cpu}
