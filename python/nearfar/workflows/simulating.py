"""Run ``nearfar sim``: select the source from the flags, and simulate it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.profiles import load_profile
from nearfar.report import terminal
from nearfar.report.printing import show
from nearfar.simulation.devices import Device
from nearfar.workflows.sim_flags import refuse_ignored

if TYPE_CHECKING:
    from nearfar._native import SimSource
    from nearfar.records.choices import CoreModel, EngineName, PagePolicy, WritePolicy
    from nearfar.simulation.placements import Placement
    from nearfar.simulation.results import Simulation


#: Requests of a synthetic stream, and of a point of a curve.
_REQUESTS, _POINT_REQUESTS = 1_000_000, 200_000
#: With more, the picoseconds of a long trace overflow 64 bits.
_MOST_INSTRUCTION_NS = 1_000_000


@dataclass(frozen=True)
class Request:
    """The flags of the verb."""

    trace: Path | None
    counts: Path | None
    pattern: str | None
    curve: bool
    near: str
    far: str
    placement: str
    place: list[str]
    near_size: str | None
    engine: str
    core: CoreModel
    window: int | None
    page_policy: PagePolicy | None
    write_policy: WritePolicy | None
    instruction_ns: float
    entries: int | None
    size: str
    write_share: float
    cpu_time_s: float
    seed: int
    suite: str | None
    out: Path | None
    quiet: bool
    given: Mapping[str, str]  # parameters on the command line, and their flags


def check(request: Request) -> None:
    """Raise BadInputError for incompatible flags. Reads no file."""
    refuse_ignored(request.given)
    if request.trace or request.pattern:
        _check_core_and_objects(request, _placement(request))


def _placement(request: Request) -> Placement:
    from nearfar.simulation import placements
    from nearfar.units import parse_size

    near_bytes = parse_size(request.near_size) if request.near_size is not None else 0
    return placements.parse(request.placement, request.place, near_bytes)


def simulate(request: Request, json: str | None) -> None:
    """Simulate and show. Raises BadInputError for incompatible flags."""
    check(request)
    if request.suite is not None:
        _suite(request, request.suite, json)
    elif request.counts:
        _counts(request, request.counts, json)
    elif request.curve:
        _curve(request, json)
    else:
        result = _stream(request)
        show("sim", result, terminal.simulation(result), json)


def _suite(request: Request, name: str, json: str | None) -> None:
    from nearfar.simulation.suite import load_suite, run_suite
    from nearfar.workflows.recording import Kept, recorded

    suite = load_suite(name)
    with recorded(
        "sim",
        {"suite": suite.model_dump(mode="json")},
        Kept(suite.seed, request.out, strict=False, quiet=request.quiet),
    ) as recording:
        shown = recording.session.progress
        result = run_suite(suite, lambda done, of, what: shown.step(what, done / of))
        recording.keep("experiment", result, [])
    recording.show(terminal.experiment(result), recording.document(result), json)


def _counts(request: Request, file: Path, json: str | None) -> None:
    from nearfar.simulation.counts import read_counts
    from nearfar.simulation.counts import simulate as simulate_counts

    if not isfinite(request.cpu_time_s):
        raise BadInputError("--cpu-time-s is not a finite number", "give seconds")
    if request.page_policy not in (None, "closed"):
        raise BadInputError(
            f"--page-policy {request.page_policy}: counts do not show which accesses hit an open "
            "row",
            "leave it out, or simulate a trace",
        )
    result = simulate_counts(
        read_counts(file),
        load_profile(request.near),
        load_profile(request.far),
        cpu_time_s=request.cpu_time_s,
        write_policy=request.write_policy or "blocking",
    )
    if not request.cpu_time_s:
        result.warnings.append("no --cpu-time-s was given: this is the time of the memory alone")
    show("sim", result, terminal.counts(result), json)


def _curve(request: Request, json: str | None) -> None:
    from nearfar.simulation.curve import load_curve

    if request.engine == "both":
        raise BadInputError("--curve is drawn by one engine", "give --engine fast or exact")
    far = Device.of(load_profile(request.far))
    _check_rows(request, far)
    result = load_curve(
        far,
        engine=_engine(request.engine),
        page_policy=request.page_policy or "open",
        write_share=_share(request.write_share),
        requests=request.entries or _POINT_REQUESTS,
        seed=request.seed,
    )
    show("sim", result, terminal.load_curve(result), json)


def _engine(name: str) -> EngineName:
    return "exact" if name == "exact" else "fast"


def _share(share: float) -> float:
    if not 0 <= share <= 1:
        raise BadInputError("--write-share is not a fraction", "give a number from 0 to 1")
    return share


def _stream(request: Request) -> Simulation:
    from nearfar.simulation import run as running

    place = _placement(request)
    near, far = (
        Device.of(load_profile(name), one_thread=request.trace is not None)
        for name in (request.near, request.far)
    )
    _check_rows(request, near, far)
    measured = max(near.parallelism or 0, far.parallelism or 0)
    options = running.Options(
        page_policy=request.page_policy or "open",
        write_policy=request.write_policy or "posted",
        core=request.core,
        window=request.window or measured or running.WINDOW,
    )
    made: list[SimSource] = []

    def make() -> SimSource:
        made.append(_source(request, place))
        return made[-1]

    name = str(request.trace or f"{request.pattern} stream")
    if request.engine == "both":
        result = running.simulate_both(name, make, near, far, place, options)
    else:
        result = running.simulate(name, make, near, far, place, options, _engine(request.engine))
    _check_requests(name, result, made[0])
    _warn(result, made[0], place)
    return result


def _check_core_and_objects(request: Request, place: Placement) -> None:
    if request.window and request.core != "window":
        raise BadInputError(
            f"--window {request.window} has no effect with --core {request.core}",
            "leave it out, or give --core window",
        )
    if place.objects and not request.trace:
        raise BadInputError(
            f"{place.name} places objects, and a synthetic stream has none",
            "place by page= or address=, or simulate a trace",
        )


def _check_rows(request: Request, *devices: Device) -> None:
    if request.page_policy and not any(device.has_rows for device in devices):
        names = " and ".join(dict.fromkeys(device.name for device in devices))
        raise BadInputError(
            f"--page-policy {request.page_policy}: no rows are known of {names}",
            "leave it out, or name a device of commands, such as ddr4-3200",
        )


def _source(request: Request, place: Placement) -> SimSource:
    from nearfar import _native
    from nearfar.units import parse_size

    if request.trace:
        if not 0 <= request.instruction_ns <= _MOST_INSTRUCTION_NS:
            raise BadInputError(
                f"invalid --instruction-ns {request.instruction_ns:g}",
                f"give nanoseconds from 0 to {_MOST_INSTRUCTION_NS}",
            )
        return _native.TraceSource(str(request.trace), request.instruction_ns * 1000, place.objects)
    return _native.SyntheticSource(
        request.pattern or "",
        request.entries or _REQUESTS,
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
    why = source.facts()["ending"] or "no access of the program passed its caches"
    raise BadInputError(
        f"{name} holds no requests: {why}",
        "trace the program again, `nearfar trace -o T -- PROGRAM`; --after l1 records more",
    )


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
            f"the trace was taken after {facts['after']}: caches below are not in this simulation"
        )
    idle = [i for i, held in enumerate(facts["held"]) if not held]
    if idle:
        result.warnings.append(
            f"{len(idle)} of {len(place.objects)} rules of the placement matched no object"
        )
