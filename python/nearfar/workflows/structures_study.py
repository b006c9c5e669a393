"""Structures in ``study``: predict here, measure, and predict on other memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nearfar.measure.session import Effort, Session
    from nearfar.measure.timed import Case
    from nearfar.model.pointer_structures import Software
    from nearfar.model.structure_cases import Point
    from nearfar.records.choices import SetName
    from nearfar.records.structures import StructurePoint, StructuresResult
    from nearfar.stats import Estimate
    from nearfar.workflows.structures_elsewhere import Known

#: Repeats of each point; intervals of five are the minimum and the maximum.
EPOCHS = 5
#: Entries beyond the second cache, except for a list, which is too slow at that size.
ENTRIES: dict[SetName, int] = {"list": 1024, "hash": 100_000, "skip_list": 100_000}
MAP_ENTRIES, VALUE_BYTES = 100_000, 8
UPDATE_PERCENT = 50


def predict_structures(session: Session, cpus: Sequence[int], effort: Effort) -> StructuresResult:
    """Calibrate, predict, and only then measure, on the last CPU.

    The number of repeats is that of ``effort``; its time is not a limit here.
    """
    from nearfar import store
    from nearfar.model import slowdowns, structure_cases
    from nearfar.model.devices import near_memory
    from nearfar.model.host_costs import costs_of
    from nearfar.records.structures import StructuresResult
    from nearfar.workflows import calibrating, structures_elsewhere
    from nearfar.workflows.host_here import HostChoice, host_for

    epochs, cpu = effort.epochs or EPOCHS, cpus[-1]
    host = host_for(HostChoice(), session)
    costs = costs_of(host)
    near, counter = near_memory(host, costs), structure_cases.ShapeCounter(costs, cpu)
    cases = _cases()
    counter.beforehand([*structure_cases.all_in_cache(cases), *cases], cpus)
    software = calibrating.software(session, cases, host, cpu, epochs)
    points = structure_cases.predict(cases, software, costs, near, counter)
    known = _known(software)
    devices = structures_elsewhere.slowdowns_of(known, costs, near, counter)
    published = structures_elsewhere.against_paper(known, costs, cpus)
    predicted_at = store.now()
    seen = calibrating.measure_predicted(session, cases, cpu, epochs)
    return StructuresResult(
        predicted_at=predicted_at,
        effective_last_cache_bytes=host.scalar("l3_bytes"),
        devices=devices,
        published_host=slowdowns.WSCAD_HOST,
        published=published,
        **_judged([_point(session, point, seen[point.case]) for point in points]),
    )


def _cases() -> list[Case]:
    """Gets in a map and operations on each set, in a pool and in ordinary memory."""
    from nearfar.measure.timed import Case, MapWork
    from nearfar.model.structure_cases import POOL_TIER, sets

    gets = [
        Case(MapWork("map", "get", MAP_ENTRIES, VALUE_BYTES, POOL_TIER)),
        Case(MapWork("dram", "get", MAP_ENTRIES, VALUE_BYTES, "dram")),
    ]
    return gets + [c for name, n in ENTRIES.items() for c in sets(name, n, UPDATE_PERCENT)]


def _known(software: Mapping[Case, Software]) -> list[Known]:
    """Timings of each set and of its volatile counterpart."""
    from nearfar.model.structure_cases import sets
    from nearfar.workflows.structures_elsewhere import Known

    return [
        Known(
            name,
            entries,
            UPDATE_PERCENT,
            *(software[case] for case in sets(name, entries, UPDATE_PERCENT)),
        )
        for name, entries in ENTRIES.items()
    ]


def _judged(points: list[StructurePoint]) -> dict[str, Any]:
    """Keyword arguments of a result: its points, and their errors."""
    errors = [abs(point.relative_error) for point in points]
    return {
        "points": points,
        "mean_error": sum(errors) / len(errors),
        "worst_error": max(errors),
        "covered_points": sum(point.covered for point in points),
    }


def _point(session: Session, point: Point, seen: Estimate) -> StructurePoint:
    from nearfar.model.results import modelled
    from nearfar.records.structures import StructurePoint

    case = point.case
    tier = "dram" if case.volatile else case.work.tier
    shaped = session.figures(tier, persistent=not case.volatile, latency_ns=seen)
    predicted = point.predicted
    model = modelled(
        {
            "predicted_latency_ns": (
                predicted.parts.total * 1e9,
                predicted.low * 1e9,
                predicted.high * 1e9,
            )
        },
        samples=0,
    )
    return StructurePoint(
        what=case.what,
        tier=tier,
        entries=case.work.entries,
        latency_ns=seen.value,
        predicted_latency_ns=model["predicted_latency_ns"],
        relative_error=predicted.parts.total * 1e9 / seen.value - 1,
        covered=predicted.low * 1e9 <= seen.value <= predicted.high * 1e9,
        intervals={**shaped["intervals"], **model["intervals"]},
        provenance={**shaped["provenance"], **model["provenance"]},
    )
