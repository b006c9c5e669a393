"""Maps and sets predicted on this machine, then measured: two commands, with a commit between.

    .venv/bin/python benchmarks/structures.py calibrate CALIBRATION.json   # quiet machine
    .venv/bin/python benchmarks/structures.py predict CALIBRATION.json PREDICTIONS.json
    git commit PREDICTIONS.json
    .venv/bin/python benchmarks/structures.py measure PREDICTIONS.json [maps|pmdk|sets ...]

Calibrating takes about a minute, predicting (on all processors at once, for nothing is timed) and
measuring a few minutes each. The calibration holds the host's latencies and software in cache, and
no time of any point. Both calibration and measurement use the lower quartile of repeats on fresh
memory, which other guests disturb least; errors against medians are given next to it.

The cases: dependent and independent gets in a map, and insertions; gets and insertions in two maps
of libpmemobj; and the three sets of bench intset with half of the operations updates; in DRAM and
in a pool on tmpfs; six sizes from what the first caches hold to 16 times the last cache.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from nearfar.machine.topology import this_machine
from nearfar.measure import host as host_measurement
from nearfar.measure.host_figures import SOURCE
from nearfar.measure.session import Effort, Session
from nearfar.measure.timed import Case, MapWork, SetWork, TimedPlan
from nearfar.model import structure_cases
from nearfar.model.devices import near_memory
from nearfar.model.host_costs import costs_of
from nearfar.model.structure_cases import POOL_TIER, ShapeCounter, all_in_cache, entries_of
from nearfar.records.choices import MapOperation, MapType
from nearfar.records.profile import Figure, Host
from nearfar.stats import Estimate, lower_quartile

CPU = max(os.sched_getaffinity(0))
#: Number of sizes, the smallest, and the largest as a multiple of the last cache.
SIZES, SMALLEST_BYTES, LARGEST_CACHES = 6, 24 * 1024, 16
UPDATE_PERCENT = 50
PMDK_MAPS: tuple[MapType, ...] = ("map_atomic", "map_rp")
PMDK_OPERATIONS: tuple[MapOperation, ...] = ("get", "insert")


def sizes(last_cache_bytes: float) -> list[float]:
    """Sizes in bytes in equal logarithmic steps."""
    ratio = LARGEST_CACHES * last_cache_bytes / SMALLEST_BYTES
    return [SMALLEST_BYTES * ratio ** (i / (SIZES - 1)) for i in range(SIZES)]


def map_cases(last_cache_bytes: float) -> list[Case]:
    kinds: list[tuple[MapWork, bool]] = [
        (MapWork("map", "get", 0, 8, POOL_TIER), False),
        (MapWork("map", "get", 0, 8, POOL_TIER), True),
        (MapWork("map", "insert", 0, 8, POOL_TIER), False),
        (MapWork("dram", "get", 0, 8, "dram"), False),
        (MapWork("dram", "get", 0, 8, "dram"), True),
    ]
    return [
        Case(replace(work, entries=entries_of("hash", size)), dependent)
        for work, dependent in kinds
        for size in sizes(last_cache_bytes)
    ]


def pmdk_map_cases(last_cache_bytes: float) -> list[Case]:
    return [
        Case(MapWork(kind, operation, entries_of("pmdk", size), 8, POOL_TIER))
        for kind in PMDK_MAPS
        for operation in PMDK_OPERATIONS
        for size in sizes(last_cache_bytes)
    ]


def set_cases(last_cache_bytes: float) -> list[Case]:
    return [
        Case(SetWork(structure, medium, entries_of(structure, size), UPDATE_PERCENT, POOL_TIER))
        for structure in ("hash", "skip_list", "list")
        for medium in ("pmem", "dram")
        for size in sizes(last_cache_bytes)
    ]


KINDS = {
    "maps": ("bench map", map_cases),
    "pmdk": ("bench map, maps of libpmemobj", pmdk_map_cases),
    "sets": ("bench intset", set_cases),
}
#: Fresh structures of each measured point, by kind.
MEASURED = {"maps": 9, "pmdk": 5, "sets": 3}
NS = 1e9
#: Repeats of the calibration, each on fresh memory.
EPOCHS = 9


class _Silent:
    def step(self, what: str, done: float) -> None:
        pass

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)


def _timed(cases: tuple[Case, ...], epochs: int) -> dict[Case, list[float]]:
    session = Session(this_machine().id, 1, _Silent())
    samples, _ = session.repeat(
        "timed", "ns", TimedPlan(cases, CPU), Effort(60, epochs, apart=False), judge_spread=False
    )
    return {case: samples.of(case) for case in cases}


def _cases(host: Host) -> list[Case]:
    last = host.scalar("l3_bytes")
    return [case for _, cases in KINDS.values() for case in cases(last)]


def calibrate(path: Path) -> None:
    session = Session(this_machine().id, 1, _Silent())
    host = host_measurement.measure(session, CPU, EPOCHS)
    timed = _timed(all_in_cache(_cases(host)), EPOCHS)
    software = [(str(case), asdict(lower_quartile(times))) for case, times in timed.items()]
    document = {"host": host.model_dump(mode="json", exclude_none=True), "software": software}
    path.write_text(json.dumps(document, indent=1) + "\n")


def predict(calibration: Path, path: Path) -> None:
    read = json.loads(calibration.read_text())
    host = Host.model_validate(read["host"])
    cases = _cases(host)
    known = {name: Estimate(**e) for name, e in read["software"]}
    timed = {case: known[str(case)] for case in all_in_cache(cases)}
    costs = costs_of(host)
    counter = ShapeCounter(costs, CPU)
    counter.beforehand([*timed, *cases], sorted(os.sched_getaffinity(0)))
    near = near_memory(host, costs)
    software = {case: structure_cases.software(case, timed, costs, near, counter) for case in cases}
    points = structure_cases.predict(cases, software, costs, near, counter)
    document = {
        **read,
        "points": [
            {
                "case": str(p.case),
                "predicted_ns": p.predicted.parts.total * NS,
                "interval_ns": [p.predicted.low * NS, p.predicted.high * NS],
                "parts_ns": {k: v * NS for k, v in asdict(p.predicted.parts).items()},
            }
            for p in points
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def measure(path: Path, *kinds: Path) -> None:
    document = json.loads(path.read_text())
    last = Host.model_validate(document["host"]).scalar("l3_bytes")
    points = {p["case"]: p for p in document["points"]}
    for kind in map(str, kinds) if kinds else KINDS:
        title, cases = KINDS[kind]
        wanted = tuple(cases(last))
        if unknown := [str(case) for case in wanted if str(case) not in points]:
            sys.exit(f"{path} does not predict {', '.join(unknown)}: predict again")
        started = time.monotonic()
        timed = _timed(wanted, MEASURED[kind])
        rows = [_judged(points[str(case)], timed[case]) for case in wanted]
        for i, what in enumerate(("lower quartiles", "medians")):
            errors = [abs(row[i][0]) for row in rows]
            print(
                f"{title}, {what} of {MEASURED[kind]}: mean error {fmean(errors):.1%}, worst "
                f"{max(errors):.1%}, interval covers {fmean(row[i][1] for row in rows):.0%} of "
                f"{len(rows)} points"
            )
        print(f"{time.monotonic() - started:.0f} s")
    _drift(Host.model_validate(document["host"]))


def _drift(before: Host) -> None:
    """Prints the host as it is now next to what was calibrated: predictions could not know it."""
    session = Session(this_machine().id, 1, _Silent())
    after = host_measurement.measure(session, CPU, 3)
    for key, figure in after.figures.items():
        then = before.figures.get(key)
        if figure.source == SOURCE and then is not None:
            print(f"{key}: calibrated {_numbers(then)}, afterwards {_numbers(figure)}")


def _numbers(figure: Figure) -> str:
    if figure.points is None:
        return f"{figure.value:.4g}"
    return " ".join(f"{x:.3g}:{y:.3g}" for x, y in figure.points)


def _judged(point: dict[str, Any], times: list[float]) -> list[tuple[float, bool]]:
    """Prints a point; against either statistic, its relative error, and whether it is covered."""
    low, high = point["interval_ns"]
    seen = lower_quartile(times)
    judged = [
        (point["predicted_ns"] / value - 1, low <= value <= high)
        for value in (seen.value, seen.high)
    ]
    errors = ", ".join(f"{error:+6.1%}{'' if covered else ' outside'}" for error, covered in judged)
    print(
        f"{point['case']:50} {point['predicted_ns']:9.1f} [{low:9.1f}, {high:9.1f}]  measured "
        f"{seen.value:9.1f}, median {seen.high:9.1f}: {errors}"
    )
    return judged


if __name__ == "__main__":
    steps: dict[str, Callable[..., None]] = {
        "calibrate": calibrate,
        "predict": predict,
        "measure": measure,
    }
    steps[sys.argv[1]](*map(Path, sys.argv[2:]))
