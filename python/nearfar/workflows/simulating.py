"""Run the simulation of a request: its source, memories, placement and core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.measure.progress import silent
from nearfar.simulation.controller import (
    DEFAULT_MAPPING,
    DEFAULT_TIMEOUT_NS,
    Controller,
    parse_write_drain,
)
from nearfar.simulation.devices import Device, refuse_without_states
from nearfar.tracing.truncated import refuse_unfinished, truncation
from nearfar.workflows import sim_memories
from nearfar.workflows.sim_flags import CONTROLLER, refuse_ignored

if TYPE_CHECKING:
    from nearfar._native import SimSource
    from nearfar.measure.progress import ProgressSource
    from nearfar.records.choices import (
        CoreModel,
        EngineChoice,
        EngineName,
        PagePolicy,
        Scheduler,
        StreamPattern,
        WritePolicy,
    )
    from nearfar.records.experiment import ExperimentResult
    from nearfar.records.simulation import CountsSimulation, LoadCurve, Simulation
    from nearfar.simulation.placements import Placement
    from nearfar.simulation.run import ChosenTiers
    from nearfar.simulation.run import Options as RunOptions
    from nearfar.workflows.options import Options
    from nearfar.workflows.recording import Measured


#: Default numbers of requests: of a synthetic stream, and of a point of a curve.
_REQUESTS, _POINT_REQUESTS = 1_000_000, 200_000
#: Larger values would overflow the 64-bit picoseconds of a long trace.
_MAX_INSTRUCTION_NS = 1_000_000


@dataclass(frozen=True)
class SimRequest:
    """Settings of a simulation. Exactly one source is given.

    Sources: ``trace`` (a file of ``nearfar trace``), ``counts`` (a JSON file of reads and writes),
    ``pattern`` (a synthetic stream), ``curve`` (latency by offered bandwidth). ``near_size`` and
    ``size`` are texts such as ``16MiB``. ``placement``: where data is placed; ``place``: rules for
    single objects, sites or addresses. ``truncated``: accept a trace whose end is missing. None
    selects the default of ``nearfar sim --help``.
    """

    trace: Path | None = None
    counts: Path | None = None
    pattern: StreamPattern | None = None
    curve: bool = False
    near: str = "dram-snu"
    far: str = "pcm-snu-ns"
    placement: str = "all-far"
    place: Sequence[str] = ()
    near_size: str | None = None
    engine: EngineChoice = "auto"
    core: CoreModel = "window"
    window: int | None = None
    threads: int | None = None
    page_policy: PagePolicy | None = None
    row_timeout: float | None = None
    scheduler: Scheduler = "fr-fcfs"
    row_hit_cap: int | None = None
    write_drain: str = "32:16:1"
    mapping: str = DEFAULT_MAPPING
    power_down_after: float | None = None
    self_refresh_after: float | None = None
    write_policy: WritePolicy | None = None
    instruction_ns: float = 0.37
    requests: int | None = None
    size: str = "1GiB"
    write_share: float = 0.0
    cpu_time_s: float = 0.0
    seed: int = 1
    truncated: bool = False

    @classmethod
    def names(cls) -> list[str]:
        """Names of the fields."""
        return [field.name for field in fields(cls)]

    def given(self) -> dict[str, str]:
        """Fields that differ from their defaults, with their flags."""
        return {
            f.name: f"--{f.name.replace('_', '-')}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        }


def check(request: SimRequest, given: Mapping[str, str] | None = None) -> None:
    """Raise BadInputError for incompatible fields. Reads no file.

    ``given``: given fields with their flags; by default those that differ from their defaults.
    """
    refuse_ignored(request.given() if given is None else given)
    if request.row_timeout is not None and request.page_policy != "timeout":
        raise BadInputError(
            f"--row-timeout has no effect with --page-policy {request.page_policy or 'open'}",
            "omit it, or give --page-policy timeout",
        )
    if request.trace or request.pattern:
        _check_core_and_objects(request, _placement(request))


def _placement(request: SimRequest) -> Placement:
    from nearfar.simulation import placements
    from nearfar.units import parse_size

    near_bytes = parse_size(request.near_size) if request.near_size is not None else 0
    return placements.parse(request.placement, list(request.place), near_bytes)


def simulate(
    request: SimRequest,
    given: Mapping[str, str] | None = None,
    progress: ProgressSource = silent,
) -> Simulation | CountsSimulation | LoadCurve:
    """Simulate a request. Raises BadInputError for incompatible fields, as ``check`` does."""
    check(request, given)
    if request.counts:
        return _counts(request, request.counts, progress)
    if request.curve:
        return _curve(request, progress)
    return _stream(request, request.given() if given is None else given, progress)


def simulate_recorded(
    request: SimRequest, options: Options, given: Mapping[str, str] | None = None
) -> Measured[Simulation | CountsSimulation | LoadCurve]:
    """Simulate a request and keep a record. Each kind of result has its own section."""
    from nearfar.records.simulation import CountsSimulation, LoadCurve
    from nearfar.workflows.recording import recorded

    check(request, given)
    arguments = {f.name: getattr(request, f.name) for f in fields(request)}
    with recorded("sim", _plain(arguments), replace(options, seed=request.seed)) as recording:
        shown = recording.session.progress
        result = simulate(request, given, lambda: nullcontext(shown))
        section = "simulation"
        if isinstance(result, CountsSimulation):
            section = "simulated_counts"
        elif isinstance(result, LoadCurve):
            section = "load_curve"
        recording.keep(section, result)
    return recording.measured(result)


def _plain(arguments: dict[str, object]) -> dict[str, object]:
    return {
        key: str(value) if isinstance(value, Path) else value
        for key, value in arguments.items()
        if value is not None
    }


def experiment(name: str, options: Options) -> Measured[ExperimentResult]:
    """Simulate an experiment, such as ``seoul``, and keep a record."""
    from nearfar.simulation.experiment import load_experiment, run_experiment
    from nearfar.workflows.recording import recorded

    chosen = load_experiment(name)
    # The key of records since version 0.1, when experiments were called suites.
    arguments = {"suite": chosen.model_dump(mode="json")}
    with recorded("sim", arguments, replace(options, seed=chosen.seed)) as recording:
        shown = recording.session.progress
        result = run_experiment(chosen, lambda done, of, what: shown.step(what, done / of))
        recording.keep("experiment", result)
    return recording.measured(result)


def _counts(request: SimRequest, file: Path, progress: ProgressSource) -> CountsSimulation:
    from nearfar.simulation.access_counts import read_access_counts
    from nearfar.simulation.access_counts import simulate as simulate_counts

    if not isfinite(request.cpu_time_s):
        raise BadInputError("--cpu-time-s is not a finite number", "give seconds")
    if request.page_policy not in (None, "closed"):
        raise BadInputError(
            f"--page-policy {request.page_policy}: counts do not show which accesses hit an open "
            "row",
            "omit it, or simulate a trace",
        )
    result = simulate_counts(
        read_access_counts(file),
        *sim_memories.load([request.near, request.far], progress),
        cpu_time_s=request.cpu_time_s,
        write_policy=request.write_policy or "blocking",
    )
    if not request.cpu_time_s:
        result.warnings.append("no --cpu-time-s was given: this is the time of the memory alone")
    return result


def _curve(request: SimRequest, progress: ProgressSource) -> LoadCurve:
    from nearfar.simulation.curve import load_curve

    if request.engine == "both":
        raise BadInputError("--curve requires one engine", "give --engine fast or exact")
    (profile,) = sim_memories.load([request.far], progress)
    far = Device.of(profile)
    _check_rows(request, far)
    refuse_without_states(_controller(request), far)
    return load_curve(
        far,
        engine=_engine(request.engine),
        controller=_controller(request),
        write_share=_share(request.write_share),
        requests=request.requests or _POINT_REQUESTS,
        seed=request.seed,
    )


def _controller(request: SimRequest) -> Controller:
    return Controller(
        page_policy=request.page_policy or "open",
        timeout_ns=DEFAULT_TIMEOUT_NS if request.row_timeout is None else request.row_timeout,
        scheduler=request.scheduler,
        row_hit_cap=request.row_hit_cap,
        write_drain=parse_write_drain(request.write_drain),
        mapping=request.mapping,
        power_down_after_ns=request.power_down_after,
        self_refresh_after_ns=request.self_refresh_after,
    )


def _engine(name: str) -> EngineName:
    return "exact" if name == "exact" else "fast"


def _share(share: float) -> float:
    if not 0 <= share <= 1:
        raise BadInputError("--write-share is not a fraction", "give a number from 0 to 1")
    return share


def _stream(request: SimRequest, given: Mapping[str, str], progress: ProgressSource) -> Simulation:
    from nearfar.simulation import run as running

    place = _placement(request)
    if request.trace and not request.truncated:
        refuse_unfinished(request.trace)
    near, far = (
        Device.of(profile, one_thread=request.trace is not None)
        for profile in sim_memories.load([request.near, request.far], progress)
    )
    _check_rows(request, near, far)
    refuse_without_states(_controller(request), near, far)
    options = _options(request, near, far)
    # A source is read once, by one engine. ``auto`` and ``both`` may need a source for each engine;
    # the last one is read to its end.
    made: list[SimSource] = []

    def make() -> SimSource:
        made.append(_source(request, place))
        return made[-1]

    name = str(request.trace or f"{request.pattern} stream")
    chosen: running.ChosenTiers = frozenset(tier for tier in running.TIERS if tier in given)
    simulate = {"both": running.simulate_both, "auto": running.simulate_auto}.get(
        request.engine, partial(running.simulate, engine=_engine(request.engine))
    )
    result = simulate(name, make, near, far, place, options, chosen=chosen)
    _check_requests(name, result, made[-1])
    _refuse_truncated(request, made[-1])
    _warn(result, made[-1], place)
    result.warnings += _on_unused(result, chosen) if "placement" not in given else []
    result.limits += _on_instructions(request, result)
    return result


def _on_instructions(request: SimRequest, result: Simulation) -> list[str]:
    """The assumed time of an instruction, if it is part of the result."""
    if not request.trace or not result.cpu_time_s:
        return []
    return [
        f"CPU time between requests: {request.instruction_ns:g} ns an instruction, an assumption "
        "(--instruction-ns)"
    ]


def _options(request: SimRequest, near: Device, far: Device) -> RunOptions:
    from nearfar.simulation import run as running

    measured = max(near.parallelism or 0, far.parallelism or 0)
    return running.Options(
        controller=_controller(request),
        write_policy=request.write_policy or "posted",
        core=request.core,
        window=request.window or measured or running.WINDOW,
        threads=request.threads or 1,
    )


def _check_core_and_objects(request: SimRequest, place: Placement) -> None:
    if request.window and request.core != "window":
        raise BadInputError(
            f"--window {request.window} has no effect with --core {request.core}",
            "omit it, or give --core window",
        )
    if place.objects and not request.trace:
        raise BadInputError(
            f"{place.name} places objects, but a synthetic stream has none",
            "place by page= or address=, or simulate a trace",
        )


def _check_rows(request: SimRequest, *devices: Device) -> None:
    if any(device.has_rows for device in devices):
        return
    names = " and ".join(dict.fromkeys(device.name for device in devices))
    for flag in (flag for name, flag in request.given().items() if name in CONTROLLER):
        raise BadInputError(
            f"{flag} has no effect: no rows are simulated for {names}",
            "omit it, or choose a device with command timings, such as ddr4-3200",
        )


def _source(request: SimRequest, place: Placement) -> SimSource:
    from nearfar import _native
    from nearfar.units import parse_size

    if request.trace:
        if not 0 <= request.instruction_ns <= _MAX_INSTRUCTION_NS:
            raise BadInputError(
                f"invalid --instruction-ns {request.instruction_ns:g}",
                f"give nanoseconds from 0 to {_MAX_INSTRUCTION_NS}",
            )
        return _native.TraceSource(str(request.trace), request.instruction_ns * 1000, place.objects)
    return _native.SyntheticSource(
        request.pattern or "",
        request.requests or _REQUESTS,
        parse_size(request.size),
        _share(request.write_share),
        0.0,
        request.seed,
    )


def _check_requests(name: str, result: Simulation, source: SimSource) -> None:
    """Raise BadInputError for a trace without simulated requests."""
    from nearfar import _native

    if result.requests or not isinstance(source, _native.TraceSource):
        return
    why = source.facts()["ending"] or "the program had no cache misses"
    raise BadInputError(
        f"{name} holds no requests: {why}",
        "trace the program again, `nearfar trace -o T -- PROGRAM`; --after l1 records more",
    )


def _refuse_truncated(request: SimRequest, source: SimSource) -> None:
    """Raise BadInputError for a trace with damage that only its reader sees."""
    from nearfar import _native

    if request.trace is None or request.truncated or not isinstance(source, _native.TraceSource):
        return
    facts = source.facts()
    if not facts["complete"]:
        raise truncation(request.trace, facts["ending"])


def _on_unused(result: Simulation, chosen: ChosenTiers) -> list[str]:
    """A warning if near memory was named and no request reached it."""
    near = result.tiers.near
    if "near" not in chosen or near.reads + near.writes:
        return []
    return [
        f"no request reached near memory ({near.device}): all data is far unless --placement says "
        "otherwise; name the device with --far, or give --placement all-near"
    ]


def _warn(result: Simulation, source: SimSource, place: Placement) -> None:
    from nearfar import _native
    from nearfar.tracing.recording import ending_of

    if not isinstance(source, _native.TraceSource):
        return
    facts = source.facts()
    if not facts["complete"]:
        result.warnings.append(facts["ending"])
    if facts["exit_code"]:
        result.warnings.append(f"the traced program {ending_of(facts['exit_code'])}")
    if facts["after"] != "llc":
        result.warnings.append(
            f"the trace was taken after {facts['after']}: caches below it are not simulated"
        )
    unused = sum(not matched for matched in facts["matched_objects"])
    if unused:
        result.warnings.append(
            f"{unused} of {len(place.objects)} rules of the placement matched no object"
        )
