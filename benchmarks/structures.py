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
NS = 1e9


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
    return validation.map_cases(last) + validation.set_cases(last)


def calibrate(path: Path) -> None:
    session = Session(this_machine().id, 1, _Silent())
    host = host_measurement.measure(session, CPU, Effort(30, 5, apart=False))
    timed = _timed(validation.all_in_cache(_cases(host)), 5)
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
    points = validation.predict(
        cases, timed, costs, near_memory(host, costs), Watching(costs.caches, CPU)
    )
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
    points = {p["case"]: p for p in document["points"]}
    cases = {str(c): c for c in _cases(Host.model_validate(document["host"]))}
    started = time.monotonic()
    timed = _timed(tuple(cases[name] for name in points), 3)
    rows = []
    for name, point in points.items():
        seen = median(timed[cases[name]])
        low, high = point["interval_ns"]
        error = point["predicted_ns"] / seen.value - 1
        covered = low <= seen.value <= high
        rows.append((cases[name], error, covered))
        print(f"{name:50} {point['predicted_ns']:9.1f} [{low:9.1f}, {high:9.1f}]  measured "
              f"{seen.value:9.1f} [{seen.low:9.1f}, {seen.high:9.1f}] {error:+6.1%} "
              f"{'' if covered else 'outside'}")  # fmt: skip
    for title, kind in (("bench map", "MapWork"), ("bench intset", "SetWork")):
        own = [(abs(e), c) for case, e, c in rows if type(case.work).__name__ == kind]
        print(f"{title}: mean error {fmean(e for e, _ in own):.1%}, worst "
              f"{max(e for e, _ in own):.1%}, interval covers {fmean(c for _, c in own):.0%} of "
              f"{len(own)} points")  # fmt: skip
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    {"calibrate": calibrate, "predict": predict, "measure": measure}[sys.argv[1]](
        *map(Path, sys.argv[2:])
    )
