"""Cost of a value's size, and time to the first operation.

    .venv/bin/python benchmarks/value_sizes.py        # idle machine, under two minutes

The Nicosia thesis found that gets on PMDK's map take the same time for all value sizes, and that
initialization takes long compared with gets. Sizes: maps of ENTRIES entries, values of 1 B to
4 KiB, as objects neither written nor read (its benchmark's --alloc), or written by insertions and
read by gets. Initialization: the pool made, the map filled with INITIAL entries, and one get of
each.
Interleaved rounds, a fresh map each; medians with 95 % intervals.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from nearfar import _native
from nearfar.stats import Estimate, median

CPU = max(os.sched_getaffinity(0))
ENTRIES, INITIAL = 20_000, 200_000
VALUES = (1, 8, 64, 256, 1024, 4096)
ROUNDS = 7
#: The largest of a cost that is called flat, over the least.
FLAT = 1.10


class Kind(NamedTuple):
    """A map, whether its values are objects that no reader opens, and where it lies."""

    type: str
    alloc: bool
    tier: str

    def __str__(self) -> str:
        return f"{self.type}{', values not touched' if self.alloc else ''}, {self.tier}"


KINDS = (
    Kind("map_atomic", True, "shm:"),
    Kind("map_atomic", False, "shm:"),
    Kind("map_rp", True, "shm:"),
    Kind("map_rp", False, "shm:"),
    Kind("map", False, "shm:"),
    Kind("dram", False, "dram"),
)


def _made(
    kind: Kind, operation: str, entries: int, value: int, *, touched: bool = True
) -> _native.MapBench:
    place = f"{kind.tier},populate" if touched and kind.tier != "dram" else kind.tier
    return _native.MapBench(kind.type, operation, entries, value, kind.alloc, place, [CPU], 1)


def _formatted(estimate: Estimate, digits: int = 0) -> str:
    value, low, high = (f"{x:.{digits}f}" for x in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def sizes(operation: str) -> None:
    """ns an operation by value size."""
    points = [(kind, value) for kind in KINDS for value in VALUES]
    times: dict[tuple[Kind, int], list[float]] = {point: [] for point in points}
    for turn in range(ROUNDS):
        for kind, value in random.Random(turn).sample(points, len(points)):
            bench = _made(kind, operation, ENTRIES, value)
            if operation == "get":
                bench.run("whole")
            times[kind, value].append(bench.run("whole")["seconds"] * 1e9 / ENTRIES)
            del bench
    print(f"{operation}: ns an operation, {ENTRIES:,} entries, median of {ROUNDS} [95 %]")
    print("| map | " + " | ".join(f"{v} B" for v in VALUES) + " | largest / least | |")
    for kind in KINDS:
        found = [median(times[kind, value]) for value in VALUES]
        ratio = max(e.value for e in found) / min(e.value for e in found)
        print(
            f"| {kind} | "
            + " | ".join(map(_formatted, found))
            + f" | {ratio:.2f} | {_verdict(found)} |"
        )
    print()


def _verdict(found: list[Estimate]) -> str:
    """Whether the cost grows, as far as the intervals show."""
    least = min(found, key=lambda e: e.value)
    most = max(found, key=lambda e: e.value)
    if most.value <= FLAT * least.value:
        return "flat"
    return "grows" if most.low > least.high else "noise"


def initialisation() -> None:
    """Seconds to make a pool, to fill the map, and for one get of each entry."""
    rows: dict[Kind, list[tuple[float, ...]]] = {kind: [] for kind in KINDS}
    for turn in range(ROUNDS):
        for kind in random.Random(turn).sample(KINDS, len(KINDS)):
            rows[kind].append(_initial(kind))
    print(f"initialisation, {INITIAL:,} entries of 8 bytes: ms, median of {ROUNDS} [95 %]")
    print(
        "| map | pool made, pages untouched | pages touched beforehand | filled | gets of all |"
        " filling an entry over a get | of all, gets |"
    )
    for kind, seen in rows.items():
        made, touched, filled, gets = (median([s[i] * 1e3 for s in seen]) for i in range(4))
        ratio = median([s[2] / s[3] for s in seen])
        share = median([s[3] / (s[1] + s[2] + s[3]) for s in seen])
        print(
            f"| {kind} | {_formatted(made, 1)} | {_formatted(touched, 1)} | {_formatted(filled)} |"
            f" {_formatted(gets, 1)} | {_formatted(ratio, 1)} | {share.value:.1%} |"
        )
    print()


def _initial(kind: Kind) -> tuple[float, float, float, float]:
    """Untouched and touched pools, loading, one pass of gets; the latter two on a touched pool."""
    made = []
    for touched in (False, True):
        started = time.perf_counter()
        bench = _made(kind, "insert", INITIAL, 8, touched=touched)
        made.append(time.perf_counter() - started)
        del bench
    bench = _made(kind, "get", INITIAL, 8)
    return made[0], made[1], bench.load_seconds(), bench.run("whole")["seconds"]


if __name__ == "__main__":
    started = time.monotonic()
    parts: dict[str, Callable[[], None]] = {
        "get": partial(sizes, "get"),
        "insert": partial(sizes, "insert"),
        "initialisation": initialisation,
    }
    for part in sys.argv[1:] or parts:
        parts[part]()
    print(f"{time.monotonic() - started:.0f} s")
