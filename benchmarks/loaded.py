"""Latency under load against the probes it must agree with, in interleaved pairs.

    .venv/bin/python benchmarks/loaded.py

Its idle end is compared with the chase, its far end with the bandwidth that the same number of
threads reads when nothing chases, and the curve between is checked to rise within its intervals.
"""

from __future__ import annotations

import math
import os

from references import MIB, interleave

from nearfar._native import AccessProbe, LatencyProbe, LoadedProbe
from nearfar.stats import median

REGION, TRAFFIC, SAMPLE_NS = 128 * MIB, 64 * MIB, 20_000_000
TIER = "dram,pages=thp"
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, math.inf)
REPEATS = 11


def main() -> None:
    chaser, *traffic = sorted(os.sched_getaffinity(0))
    loaded = LoadedProbe(TIER, REGION, TRAFFIC, chaser, traffic, 1)
    chase = LatencyProbe(TIER, REGION, chaser)
    chase.prepare(REGION, 64, 1, 1_000_000)
    access = AccessProbe(TIER, TRAFFIC * len(traffic), traffic)

    def run(offered: float) -> tuple[float, float]:
        r = loaded.run("sequential", 1, 0, offered, SAMPLE_NS, 1)
        return r["latency_ns"], r["traffic_bytes_per_s"]

    interleave(
        lambda: {"idle latency, ns": run(0.0)[0]},
        lambda: {"idle latency, ns": chase.sample(SAMPLE_NS)["latency_ns"]},
        "idle end against the chase",
    )

    def read() -> dict[str, float]:
        r = access.run("sequential", 1024, 0, 1, 0, False, traffic, SAMPLE_NS, 1)
        return {"bytes/s": r["counted_bytes"] / r["seconds"]}

    interleave(
        lambda: {"bytes/s": run(math.inf)[1]}, read, "far end against reading with the same threads"
    )
    most = median([run(math.inf)[1] for _ in range(5)]).value / len(traffic)
    rounds = [[run(share * most) for share in SHARES] for _ in range(REPEATS)]
    print("\ncurve: achieved GB/s, latency ns [95 %]")
    lowest = 0.0
    monotone = True
    for i, _ in enumerate(SHARES):
        latency = median([r[i][0] for r in rounds])
        achieved = median([r[i][1] for r in rounds])
        print(
            f"  {achieved.value / 1e9:6.2f}  {latency.value:7.1f} "
            f"[{latency.low:.1f}, {latency.high:.1f}]"
        )
        monotone = monotone and latency.high >= lowest
        lowest = max(lowest, latency.low)
    print(f"rises within its intervals: {'yes' if monotone else 'NO'}")


if __name__ == "__main__":
    main()
