"""Maps and sets predicted on this machine, then measured: two commands, with a commit between.

    .venv/bin/python benchmarks/structures.py calibrate CALIBRATION.json   # quiet machine, 1 minute
    .venv/bin/python benchmarks/structures.py predict CALIBRATION.json PREDICTIONS.json
    git commit PREDICTIONS.json
    .venv/bin/python benchmarks/structures.py measure PREDICTIONS.json    # quiet machine, 2 minutes

The calibration holds the host's latencies and software in cache, and no time of any point.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from nearfar.machine.topology import this_machine
from nearfar.measure import host as host_measurement
from nearfar.measure.session import Effort, Session
from nearfar.measure.timed import Case, TimedPlan
from nearfar.model import validation
from nearfar.model.devices import near_memory
from nearfar.model.host_costs import costs_of
from nearfar.model.structure_cases import Watching
from nearfar.records.profile import Host
from nearfar.stats import Estimate, lower_quartile, median

CPU = max(os.sched_getaffinity(0))
KINDS = {
    "bench map": validation.map_cases,
    "bench map, maps of libpmemobj": validation.pmdk_map_cases,
    "bench intset": validation.set_cases,
}
NS = 1e9
#: Fresh structures of each point, in cache and measured.
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
    return [case for cases in KINDS.values() for case in cases(last)]


def calibrate(path: Path) -> None:
    session = Session(this_machine().id, 1, _Silent())
    host = host_measurement.measure(session, CPU, Effort(60, EPOCHS, apart=False))
    timed = _timed(validation.all_in_cache(_cases(host)), EPOCHS)
    software = [(str(case), asdict(lower_quartile(times))) for case, times in timed.items()]
    document = {"host": host.model_dump(mode="json", exclude_none=True), "software": software}
    path.write_text(json.dumps(document, indent=1) + "\n")


def predict(calibration: Path, path: Path) -> None:
    read = json.loads(calibration.read_text())
    host = Host.model_validate(read["host"])
    cases = _cases(host)
    known = {name: Estimate(**e) for name, e in read["software"]}
    timed = {case: known[str(case)] for case in validation.all_in_cache(cases)}
    costs = costs_of(host)
    watching = Watching(costs, CPU)
    watching.beforehand([*timed, *cases], sorted(os.sched_getaffinity(0)))
    points = validation.predict(cases, timed, costs, near_memory(host, costs), watching)
    document = {
        **read,
        "points": [
            {"case": str(p.case), "predicted_ns": p.predicted.parts.total * NS,
             "interval_ns": [p.predicted.low * NS, p.predicted.high * NS],
             "parts_ns": {k: v * NS for k, v in asdict(p.predicted.parts).items()}}
            for p in points
        ],
    }  # fmt: skip
    path.write_text(json.dumps(document, indent=1) + "\n")


def measure(path: Path) -> None:
    document = json.loads(path.read_text())
    last = Host.model_validate(document["host"]).scalar("l3_bytes")
    points = {p["case"]: p for p in document["points"]}
    kinds = {title: [c for c in cases(last) if str(c) in points] for title, cases in KINDS.items()}
    started = time.monotonic()
    timed = _timed(tuple(case for cases in kinds.values() for case in cases), EPOCHS)
    judged = {
        title: [_judged(points[str(case)], median(timed[case])) for case in cases]
        for title, cases in kinds.items()
    }
    for title, rows in judged.items():
        errors = [abs(error) for error, _ in rows]
        print(f"{title}: mean error {fmean(errors):.1%}, worst {max(errors):.1%}, interval covers "
              f"{fmean(covered for _, covered in rows):.0%} of {len(rows)} points")  # fmt: skip
    print(f"{time.monotonic() - started:.0f} s")


def _judged(point: dict[str, Any], seen: Estimate) -> tuple[float, bool]:
    """Prints a point; its relative error, and whether its interval holds what was measured."""
    low, high = point["interval_ns"]
    error = point["predicted_ns"] / seen.value - 1
    covered = low <= seen.value <= high
    print(f"{point['case']:50} {point['predicted_ns']:9.1f} [{low:9.1f}, {high:9.1f}]  measured "
          f"{seen.value:9.1f} [{seen.low:9.1f}, {seen.high:9.1f}] {error:+6.1%} "
          f"{'' if covered else 'outside'}")  # fmt: skip
    return error, covered


if __name__ == "__main__":
    {"calibrate": calibrate, "predict": predict, "measure": measure}[sys.argv[1]](
        *map(Path, sys.argv[2:])
    )
