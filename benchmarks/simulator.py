"""Requests a second of both engines, energy and wear on; fast against exact on the four programs.

.venv/bin/python benchmarks/simulator.py
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from nearfar import _native
from nearfar.measure import programs
from nearfar.profiles import load_profile
from nearfar.simulate.devices import Device
from nearfar.simulate.placements import Placement
from nearfar.simulate.run import Options, run

REPEATS = 5
FAR = Placement("all-far")
WORK = (("quick", 65536, 1), ("merge", 65536, 1), ("lbm", 16, 4), ("matmul", 160, 1))


def speeds() -> None:
    """Median and range of REPEATS runs; a region of 1 GiB, open rows, ten accesses in flight."""
    for name in ("ddr4-3200", "pcm-snu-ns"):
        device = Device.of(load_profile(name))
        for engine, count in (("fast", 4_000_000), ("exact", 300_000)):
            for pattern in ("random", "sequential"):
                for writes in (0.0, 0.3):
                    rates = []
                    for _ in range(REPEATS):
                        source = _native.SyntheticSource(pattern, count, 1 << 30, writes, 0.0, 1)
                        rates.append(run(source, device, device, FAR, Options(), engine)[1] / 1e6)
                    print(
                        f"{name:11} {engine:5} {pattern:10} {writes:.0%} writes "
                        f"{statistics.median(rates):.1f} [{min(rates):.1f}, {max(rates):.1f}] M/s"
                    )


def differences() -> None:
    """Fast over exact, less one: time, energy."""
    for program, n, steps in WORK:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trace"
            programs.record(program, n, steps, 1, file, [programs.CACHES["l1"]])
            for name in ("dram-snu", "pcm-snu-ns", "ddr4-3200"):
                device = Device.of(load_profile(name))
                for core, writes in (("blocking", "blocking"), ("window", "posted")):
                    options = Options(page_policy="closed" if core == "blocking" else "open",
                                      write_policy=writes, core=core)  # fmt: skip
                    ends, joules = [], []
                    for engine in ("fast", "exact"):
                        source = _native.TraceSource(str(file), 370.0, [])
                        outcome, _ = run(source, device, device, FAR, options, engine)
                        ends.append(outcome["end_ps"])
                        joules.append(sum(outcome["far"]["spent"].values()))
                    print(f"{program:6} {n:6} {name:11} {core:8} writes {writes:8} "
                          f"time {ends[0] / ends[1] - 1:+.1%} "
                          f"energy {joules[0] / joules[1] - 1:+.1%}")  # fmt: skip


if __name__ == "__main__":
    differences()
    speeds()
