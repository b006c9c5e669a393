"""Counters of ``bench map``: by perf, or by a cache model on machines without hardware events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nearfar.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path

    from nearfar.machine.model import Machine
    from nearfar.measure.maps import MapPlan
    from nearfar.records.persistent_structures import MapPoint, MapResult
    from nearfar.simulation.cache_misses import Caches

#: TLB of a host that does not report one. Any size will do: page walks are not counted.
_TLB = ((64, 4), (2048, 16))
_WAYS = 16
#: Number of counted gets; all insertions and removals are counted.
_COUNTED_GETS = 200_000
#: Minimum number of sizes for a fit.
MIN_SIZES = 4


def with_events(plan: MapPlan, wanted: str) -> MapPlan:
    """The plan with the events that this machine counts.

    Raises MachineError under ``perf`` if no hardware event is counted.
    """
    from nearfar.measure.counters import SOFTWARE_FIELDS, available

    if wanted in ("off", "simulated"):
        return plan
    events = available()
    hardware = set(events.fields.values()) - set(SOFTWARE_FIELDS)
    if wanted == "perf" and not hardware:
        raise MachineError(
            f"this machine counts no hardware events: {events.missing['instructions']}",
            "use --counters simulated or auto; or run on bare metal",
        )
    return replace(plan, events=events)


def fill(result: MapResult, wanted: str, machine: Machine) -> None:
    """Fill missing cache counters from a model of this machine's caches."""
    # The modeled operations write and read values; with --alloc, values in DRAM are never touched.
    if wanted not in ("auto", "simulated") or (result.type == "dram" and result.alloc):
        return
    for point in result.sweep:
        _fill_point(result, point, machine)
    result.counters = result.sweep[-1].counters


def _fill_point(result: MapResult, point: MapPoint, machine: Machine) -> None:
    from nearfar.measure.counters import CACHE_FIELDS
    from nearfar.records.counters import RegionCounters
    from nearfar.records.figures import Origin, Provenance

    known = point.counters
    if known is not None and known.llc_loads is not None:
        return
    figures = _simulated(result, point, machine)
    note = (
        "a model of the caches this machine reports: LRU, flushes keep their lines; one thread, "
        "values written and read"
    )
    filled = known or RegionCounters(source="simulated")
    update = {
        "source": "perf and simulated" if known and known.intervals else "simulated",
        "missing": {k: v for k, v in filled.missing.items() if k not in CACHE_FIELDS},
        "provenance": {
            **filled.provenance,
            **{
                key: Provenance(origin=Origin.SIMULATED, statistic="count", samples=1, note=note)
                for key in figures
            },
        },
        **figures,
    }
    point.counters = filled.model_copy(update=update)


def _simulated(result: MapResult, point: MapPoint, machine: Machine) -> dict[str, float]:
    from nearfar.measure.timed import MapWork
    from nearfar.simulation.cache_misses import count_misses

    tier = result.tier if result.type == "dram" else "shm:"
    work = MapWork(result.type, result.operation, point.operations, point.value_bytes, tier)
    counts = count_misses(work, _caches(machine), _COUNTED_GETS, result.cpus[0])
    last = counts.variants[0].levels[-1]
    n = point.operations
    return {
        "llc_loads": last.loads * n,
        "llc_load_misses": last.load_misses * n,
        "llc_stores": last.stores * n,
        "llc_store_misses": last.store_misses * n,
    }


def _caches(machine: Machine) -> Caches:
    from nearfar.simulation.cache_misses import Caches

    own = sorted((c for c in machine.caches if c.type != "instruction"), key=lambda c: c.size_bytes)
    levels = {c.level: (c.size_bytes, c.ways or _WAYS) for c in own}
    if not levels:
        raise MachineError(
            "this machine does not report its caches", "leave --counters out, or use perf"
        )
    return Caches(tuple(levels[level] for level in sorted(levels)), _TLB, flushes="keep")


def write_tables(result: MapResult, directory: Path) -> None:
    """Write counters.csv if the sweep has enough sizes, and a picture of its correlation matrix if
    the extra `charts` is installed."""
    from nearfar.extras import missing
    from nearfar.files import write_table
    from nearfar.model import counter_fits
    from nearfar.report.charts.correlation import write_picture

    points = [p for p in result.sweep if p.counters is not None]
    heads, rows = table(points)
    if len({p.operations for p in points}) < MIN_SIZES or len(heads) < 2:
        return
    path = directory / "counters.csv"
    write_table(path, heads, rows)
    if missing("charts"):
        return
    columns = {head: [float(row[i]) for row in rows] for i, head in enumerate(heads)}
    import numpy as np

    correlation = counter_fits.correlate({k: np.array(v) for k, v in columns.items()})
    write_picture(correlation, directory / "correlation.svg")


def table(points: Sequence[MapPoint]) -> tuple[list[str], list[list[float]]]:
    """Operations, value bytes if they vary, all counters that every point has, time."""
    from nearfar.records.counters import FIELDS

    counted = [
        f for f in FIELDS if points and all(getattr(p.counters, f) is not None for p in points)
    ]
    sized = len({p.value_bytes for p in points}) > 1
    heads = ["operations", *(["value_bytes"] if sized else []), *counted, "time_s"]
    rows = [
        [
            float(p.operations),
            *([float(p.value_bytes)] if sized else []),
            *(float(getattr(p.counters, f)) for f in counted),
            p.time_s,
        ]
        for p in points
    ]
    return heads, rows
