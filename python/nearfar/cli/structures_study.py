"""Structures in ``study``: predict them here, measure them, and predict them on other memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.measure.session import Effort, Session
    from nearfar.measure.timed import Case
    from nearfar.model.host_costs import HostCosts
    from nearfar.model.structure_results import StructureName
    from nearfar.model.structures import Memory, Software
    from nearfar.model.validation import Point
    from nearfar.records.profile import Host
    from nearfar.records.structures import DeviceSlowdown, StructurePoint, StructuresResult
    from nearfar.stats import Estimate

#: Repeats of each point; intervals of five are the least and the largest.
EPOCHS = 5
#: Entries beyond the second cache, but for a list, which nobody walks that far.
ENTRIES: dict[StructureName, int] = {"list": 1024, "hash": 100_000, "skip_list": 100_000}
MAP_ENTRIES, VALUE_BYTES = 100_000, 8
UPDATE_PERCENT = 50


def predict_structures(session: Session, cpu: int, effort: Effort) -> StructuresResult:
    """Calibrate, predict, and only then measure; budget and number of repeats are the effort's."""
    from nearfar.cli import calibrating
    from nearfar.cli.forecasts import now
    from nearfar.model import validation
    from nearfar.model.devices import near_memory
    from nearfar.model.host_costs import costs_of
    from nearfar.model.structure_cases import Watching

    epochs = effort.epochs or EPOCHS
    host = calibrating.measured_host(session, cpu, coarse=True)
    costs = costs_of(host)
    near = near_memory(host, costs)
    cases = _cases()
    known = calibrating.software(session, cases, host, cpu, epochs)
    points = validation.predict_with(cases, known, costs, near, Watching(costs.caches, cpu))
    devices = _devices(known, costs, near, cpu)
    predicted_at = now()
    seen = calibrating.measured(session, cases, cpu, epochs)
    return _result(session, host, points, seen, devices, predicted_at)


def _cases() -> list[Case]:
    """Gets in a map and operations on each set, in a pool and in ordinary memory."""
    from nearfar.measure.timed import Case, MapWork
    from nearfar.model.structure_cases import POOL_TIER, sets

    gets = [
        Case(MapWork("map", "get", MAP_ENTRIES, VALUE_BYTES, POOL_TIER)),
        Case(MapWork("dram", "get", MAP_ENTRIES, VALUE_BYTES, "dram")),
    ]
    return gets + [c for name, n in ENTRIES.items() for c in sets(name, n, UPDATE_PERCENT)]


def _devices(
    known: dict[Case, Software], costs: HostCosts, near: Memory, cpu: int
) -> list[DeviceSlowdown]:
    """Each structure on every shipped device that has a latency."""
    from nearfar.errors import BadInputError
    from nearfar.model import structure_results
    from nearfar.model.devices import far_memory
    from nearfar.model.structure_cases import Watching, sets
    from nearfar.profiles import load_profile, profile_names
    from nearfar.records.structures import DeviceSlowdown

    watching = Watching(costs.caches, cpu)
    found = []
    for name, entries in ENTRIES.items():
        work, twin = sets(name, entries, UPDATE_PERCENT)
        case = structure_results.Case(
            name, entries, UPDATE_PERCENT, watching.shape(work.work), known[work],
            watching.shape(twin.work), known[twin],
        )  # fmt: skip
        for device in profile_names():
            try:
                far = far_memory(load_profile(device), near)
            except BadInputError:  # a profile of bandwidths, or of a simulator, has no latency
                continue
            told = structure_results.predict(case, costs, near, far)
            keys = ("time_s", "slowdown")
            found.append(DeviceSlowdown(
                structure=name, entries=entries, device=device, time_s=told.time_s,
                slowdown=told.slowdown, intervals={k: told.intervals[k] for k in keys},
                provenance={k: told.provenance[k] for k in keys},
            ))  # fmt: skip
    return found


def _result(
    session: Session, host: Host, points: Sequence[Point], seen: dict[Case, Estimate],
    devices: list[DeviceSlowdown], predicted_at: str,
) -> StructuresResult:  # fmt: skip
    from nearfar.records.structures import StructuresResult

    told = [_point(session, point, seen[point.case]) for point in points]
    errors = [abs(point.relative_error) for point in told]
    return StructuresResult(
        predicted_at=predicted_at, effective_last_cache_bytes=host.scalar("l3_bytes"),
        mean_error=sum(errors) / len(errors), worst_error=max(errors),
        covered_points=sum(point.covered for point in told), points=told, devices=devices,
    )  # fmt: skip


def _point(session: Session, point: Point, seen: Estimate) -> StructurePoint:
    from nearfar.model.results import modelled
    from nearfar.records.structures import StructurePoint

    case = point.case
    tier = "dram" if case.volatile else case.work.tier
    shaped = session.figures(tier, persistent=not case.volatile, latency_ns=seen)
    predicted = point.predicted
    model = modelled(
        {"predicted_latency_ns": (predicted.parts.total * 1e9, predicted.low * 1e9,
                                  predicted.high * 1e9)}, samples=0,
    )  # fmt: skip
    return StructurePoint(
        what=case.what, tier=tier, entries=case.work.entries, latency_ns=seen.value,
        predicted_latency_ns=model["predicted_latency_ns"],
        relative_error=predicted.parts.total * 1e9 / seen.value - 1,
        covered=predicted.low * 1e9 <= seen.value <= predicted.high * 1e9,
        intervals={**shaped["intervals"], **model["intervals"]},
        provenance={**shaped["provenance"], **model["provenance"]},
    )  # fmt: skip
