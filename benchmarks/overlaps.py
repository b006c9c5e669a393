"""Assumptions of the models on one thread's accesses to memory, each measured alone.

.venv/bin/python benchmarks/overlaps.py [ROUNDS]

Loads of random lines, each of which waits for the one before, and loads and stores of random lines
that wait for nothing, on huge and small pages: their difference between the pages is the page walk,
alone and overlapped. The first two also over as many bytes as the last cache has. Sequential reads,
and STREAM's copy and triad, counted as STREAM counts: not the lines that stores read before.

Prints medians of the rounds with 95 % intervals, and ratios within a round.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable

from host_now import host_now

from nearfar._native import AccessProbe, ArrayBench, LatencyProbe
from nearfar.stats import Estimate, median, ratio_of_pairs

REGION = 512 << 20
CPU = min(os.sched_getaffinity(0))
_SAMPLE_NS, _WARM_STEPS = 100_000_000, 1 << 20
KERNELS = ("copy", "triad")
RATIOS = (
    ("dependent load, thp", "load, thp"),
    ("dependent load, 4k", "load, 4k"),
    ("dependent load, last cache", "load, last cache"),
    ("dependent load, 4k", "dependent load, thp"),
    ("load, 4k", "load, thp"),
    ("store, 4k", "store, thp"),
    ("triad", "sequential read"),
)

Measure = Callable[[], float]


def loads(tier: str, size: int, name: str) -> dict[str, Measure]:
    """Time of a load, in ns: dependent, and of its own."""
    chase = LatencyProbe(tier, size, CPU)
    chase.prepare(size, 64, 1, _WARM_STEPS)
    return {
        f"dependent load, {name}": lambda: chase.sample(_SAMPLE_NS)["latency_ns"],
        f"load, {name}": random_lines(tier, size, reads=1),
    }


def random_lines(tier: str, size: int, *, reads: int) -> Measure:
    """Time of a load or of a store, in ns."""
    probe = AccessProbe(tier, size, [CPU])

    def a_line() -> float:
        ran = probe.run("random", 64, 0, reads, 1 - reads, False, [CPU], _SAMPLE_NS, 1)
        return ran["seconds"] * 1e9 / (ran["counted_bytes"] / 64)

    return a_line


def bandwidths(tier: str) -> dict[str, Measure]:
    """Counted GB/s."""
    probe = AccessProbe(tier, REGION, [CPU])
    arrays = ArrayBench(tier, tier, tier, REGION // 8, [CPU])

    def read() -> float:
        ran = probe.run("sequential", 4096, 0, 1, 0, False, [CPU], _SAMPLE_NS, 1)
        return ran["counted_bytes"] / ran["seconds"] / 1e9

    def kernel(name: str) -> Measure:
        def moved() -> float:
            ran = arrays.repeat(name, [CPU])
            return ran["counted_bytes"] / ran["seconds"] / 1e9

        return moved

    return {"sequential read": read} | {name: kernel(name) for name in KERNELS}


def main(rounds: int) -> None:
    """All measurements in turns."""
    last = int(host_now(CPU, [], 1).scalar("l3_bytes"))
    measures: dict[str, Measure] = {}
    for pages in ("thp", "4k"):
        tier = f"dram,pages={pages}"
        measures |= loads(tier, REGION, pages)
        measures[f"store, {pages}"] = random_lines(tier, REGION, reads=0)
    measures |= loads("dram,pages=thp", last, "last cache")
    measures |= bandwidths("dram,pages=thp")
    found: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, measure in measures.items():
            found[name].append(measure())
    for name, values in found.items():
        unit = "GB/s" if name in ("sequential read", *KERNELS) else "ns"
        print(f"{name:26} {_text(median(values))} {unit}")
    for over, under in RATIOS:
        print(f"{over} / {under}: {_text(ratio_of_pairs(found[over], found[under]))}")
    print(f"{rounds} rounds over {REGION >> 20} MiB; last cache {last / 2**20:.1f} MiB")


def _text(value: Estimate) -> str:
    return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
