"""A program observed natively: its stalls sampled from outside while it runs at full speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.noise import Watch
from nearfar.place.figures import Memory
from nearfar.place.hardware_samples import has_hardware_samples, read_hardware_samples
from nearfar.place.kernel_time import first_touches_ns, with_observed_touches
from nearfar.place.native_run import check_program
from nearfar.place.program_data import PAGE_BYTES
from nearfar.place.sample_records import ordered_samples
from nearfar.place.sampled_costing import L2_NS, L3_NS, CacheSizes, SampledCoster
from nearfar.place.sampled_sizes import PageFaults
from nearfar.place.samples import ProgramSamples, read_samples
from nearfar.process.elf import ignores_preload
from nearfar.records.advice import ObservedProgram
from nearfar.records.shape import Origin, Provenance
from nearfar.sampling.recorded import read_recorded
from nearfar.sampling.run import (
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
    Observation,
    heap_near,
    refuse_failure,
    tiers_of,
)

if TYPE_CHECKING:
    from nearfar.records.profile import Host
    from nearfar.tracing.caches import Caches
    from nearfar.workflows.recording import Recording


def observe(
    wanted: AdviceRequest, recording: Recording, near_of: Callable[[Host, int], NearMemory]
) -> Observation:
    """Sample the program or the process, or read the file.

    ``near_of``: see ``emulated_run.observe``.
    """
    from nearfar.tracing.caches import caches_of

    show = recording.session.progress
    show.step("sampling the program" if wanted.perf is None else "reading the file", 0.0)
    sampled, disturbed = _watched(wanted, recording)
    show.step("measuring this machine", 0.6)
    host = host_for(wanted.host, recording.session, tiers_of(wanted))
    near = near_of(host, sampled.resident_bytes)
    show.step("weighing placements", 0.8)
    known = wanted.perf is not None and has_hardware_samples(sampled.sampler)
    data = _data(wanted, sampled, host, near.here, known=known)
    near = near.observed(_here(wanted, sampled, data, near.here))
    caches = caches_of(host, {"llc": wanted.host.llc})
    cpu_s = sampled.user_s + sampled.system_s
    coster = SampledCoster(data, near.memory, _sizes(host, caches), cpu_s, near.here)
    time_s, cpu_near_s = near.times(sampled.wall_s, cpu_s, coster.near_time_ns)
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
        fields=_fields(wanted, sampled, data) | near.fields(sampled.wall_s, cpu_s),
        provenance=_provenance(wanted, sampled, recording.machine.id, near)
        | _shares_provenance(data.samples),
        limits=advice_notes.sampled_limits(sampled, known=known),
        warnings=advice_notes.sampled(sampled, data),
        disturbed=disturbed,
    )


def _watched(wanted: AdviceRequest, recording: Recording) -> tuple[Sampled, bool]:
    """The samples, and whether other programs ran meanwhile."""
    watch = Watch("the program", section="advice")
    if wanted.pid is not None:
        recording.session.progress.note(
            f"sampling process {wanted.pid} for {format_time(wanted.time_s)}; it is not stopped"
        )
    sampled = _sampled(wanted)
    if wanted.pid is not None:
        watch.observed(sampled.user_s + sampled.system_s)
    if wanted.perf is not None:
        return sampled, False
    recording.session.noise.judge(watch)
    return sampled, watch.verdict().noisy


def _data(
    wanted: AdviceRequest, sampled: Sampled, host: Host, here: Memory, *, known: bool
) -> ProgramSamples:
    """``here``: memory that the program ran on; ``known``: hardware sampled which accesses
    missed."""
    from nearfar.measure.memory import large_pages_everywhere

    faults = PageFaults(
        sampled.page_faults,
        here.large_pages,
        everywhere_large=wanted.perf is None and large_pages_everywhere(),
    )
    data = (
        _known_data(wanted, sampled, host, faults)
        if known
        else read_samples(
            sampled.sampler,
            sampled.user_s,
            sampled.period_ns,
            faults,
            sampled.resident,
            whole_sites=wanted.whole_sites,
        )
    )
    if data.samples < MIN_SAMPLES:
        raise _too_few(wanted, sampled)
    return data


def _here(wanted: AdviceRequest, sampled: Sampled, data: ProgramSamples, memory: Memory) -> Memory:
    """The memory of the run, with first touches as they were in it if all page faults were
    sampled."""
    if wanted.perf is not None or wanted.pid is not None or sampled.by_signals:
        return memory
    samples = ordered_samples(sampled.sampler)
    touches_ns = first_touches_ns(samples, sampled.period_ns, sampled.system_s)
    return with_observed_touches(memory, data.touched, touches_ns)


def _too_few(wanted: AdviceRequest, sampled: Sampled) -> BadInputError:
    used = f"{wanted.name()} used {sampled.user_s:.2g} s of CPU time"
    if wanted.program:
        used += f", {wanted.stdin.role}"
    if sampled.by_signals and sampled.user_s * 1e9 > MIN_SAMPLES * sampled.period_ns:
        return BadInputError(
            f"{used}, and was not sampled: {REFUSED}, and {UNREACHED}",
            "set kernel.perf_event_paranoid to at most 2, permit perf_event_open in the "
            "container, or trace every access with --emulate",
        )
    more = "give it more work, or more --time"
    if wanted.program:
        more += ", or trace every access with --emulate"
    return BadInputError(f"{used}: too little to sample", more)


def _known_data(
    wanted: AdviceRequest, sampled: Sampled, host: Host, faults: PageFaults
) -> ProgramSamples:
    frequency = host.figures.get("frequency_hz")
    if frequency is None or not frequency.value:
        raise BadInputError(
            f"host {host.name} has no frequency_hz, by which sampled cycles become ns",
            "add the figure to the host's file, or name another host with --host",
        )
    return read_hardware_samples(
        sampled.sampler, sampled.user_s, frequency.value, faults, whole_sites=wanted.whole_sites
    )


def _sampled(wanted: AdviceRequest) -> Sampled:
    if wanted.perf is not None:
        return read_recorded(wanted.perf)
    if wanted.pid is not None:
        return sample_process(wanted.pid, wanted.time_s)
    why_unlogged = ignores_preload(check_program(wanted.program[0]))
    found = _once(wanted, PERIOD_NS)
    if period_for(found.user_s) < PERIOD_NS and found.ended and not found.by_signals:
        found = _once(wanted, period_for(found.user_s)).with_times_of(found)
    if why_unlogged:
        found.notes.append(f"{why_unlogged}: its heap has no allocation sites")
    return found


def _once(wanted: AdviceRequest, period_ns: int) -> Sampled:
    from nearfar.measure.memory import large_pages_everywhere, page_bytes

    placed = heap_near(wanted)
    on_large = placed is not None and page_bytes(wanted.near) > PAGE_BYTES
    found = sample_program(
        wanted.program,
        placed,
        wanted.stdin.path,
        wanted.time_s,
        period_ns,
        large_pages=on_large or large_pages_everywhere(),
    )
    if found.code and found.ended:
        refuse_failure(wanted, found.code, wanted.stdin.role)
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


def _fields(wanted: AdviceRequest, sampled: Sampled, data: ProgramSamples) -> dict[str, object]:
    total = sum(count for _, count in sampled.programs) or 1
    return {
        "method": "sampled",
        "programs": [
            ObservedProgram(path=name, cpu_share=count / total) for name, count in sampled.programs
        ],
        "samples": data.samples,
        "unknown_share": data.unknown_share,
        "sampling_period_s": sampled.period_ns * 1e-9 or None,
        "pid": sampled.pid,
        "perf": wanted.perf,
    }


def _provenance(
    wanted: AdviceRequest, sampled: Sampled, machine: str, near: NearMemory
) -> dict[str, Provenance]:
    if wanted.perf is not None:
        return _recorded_provenance(sampled)
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
        **near.provenance((wall, cpu)),
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
