"""The persistent map against measured bounds, its counterpart in DRAM, and `map_rp`.

Usage: map_bounds.py ENTRIES ROUNDS [KIND...]

In each round, in random order: insertions, look-ups (in a row, dependent, batched) and removals of
each KIND: map, dram (its volatile counterpart), map_rp (after PMDK's hashmap_rp); all by default.
Look-ups of the map by two threads, and by one next to a writer. The bounds over as many bytes as
the map's pool has, on the same tier: a bound is the time of an access that an operation cannot do
without, measured alone.

read bound         a load of a random line that the next one waits for (a dependent look-up has one)
independent bound  a load of a random line that nothing waits for (any look-up has one); the same by
                   two threads: time of one thread's load over their number
write bound        a store to a random line, clwb and sfence (an insertion or a removal has one)

An insertion also touches new pages of the pool; "insert, touched pages" is one in a pool whose
pages were touched when it was made.

Prints medians in ns for each operation of a thread with their 95 % intervals, and the ratios of the
values of a round (median, interval). Keys and values have 8 bytes. Emulated: the pool is in shm:.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable

from nearfar._native import AccessProbe, LatencyProbe, MapBench, PersistenceProbe
from nearfar.stats import Estimate, median, ratio_of_pairs

TIER, TOUCHED, CPUS = "shm:", "shm:/dev/shm,populate", (0, 1)
_SAMPLE_NS, _WARM_STEPS = 200_000_000, 1 << 20
#: Ratio: what is measured, and what it is compared with.
RATIOS = (
    ("insert", "write bound"),
    ("insert, touched pages", "write bound"),
    ("remove", "write bound"),
    ("dependent", "read bound"),
    ("get", "dram get"),
    ("dependent", "dram dependent"),
    ("get", "batched"),
    ("map_rp insert", "insert"),
    ("map_rp get", "get"),
    ("map_rp get", "batched"),
    ("map_rp dependent", "dependent"),
    ("map_rp dependent", "read bound"),
    ("map_rp remove", "remove"),
    ("map_rp insert", "write bound"),
    ("map_rp remove", "write bound"),
    ("get", "independent bound"),
    ("batched", "independent bound"),
    ("map_rp get", "independent bound"),
    ("get", "two readers"),
    ("independent bound", "independent bound, two"),
    ("get", "get with writer"),
)


def main(entries: int, rounds: int, kinds: list[str]) -> None:
    """Run all rounds and print."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    pool_bytes = _map("map", "get", 1000).pool_bytes()
    for number in range(rounds):
        pool_bytes = _round(entries, kinds, pool_bytes, number, found)
    for name, values in found.items():
        print(f"{name:20} {_text(median(values))} ns")
    for over, under in RATIOS:
        if over in found and under in found:
            print(f"{over} / {under}: {_text(ratio_of_pairs(found[over], found[under]))}")
    print(f"{entries} entries, {rounds} rounds, pool of {pool_bytes >> 20} MiB")


def _round(
    entries: int, kinds: list[str], pool_bytes: int, number: int, found: dict[str, list[float]]
) -> int:
    """All measurements once; returns the size of a pool of so many entries."""
    size = pool_bytes

    def operations(kind: str, operation: str) -> None:
        nonlocal size
        bench = _map(kind, operation, entries)
        size = max(size, bench.pool_bytes()) if kind == "map" else size
        passes = ["whole"]
        if operation == "get":
            passes += ["dependent"] if kind == "map_rp" else ["dependent", "batched"]
        for each in passes:
            name = operation if each == "whole" else each
            found[name if kind == "map" else f"{kind} {name}"].append(
                bench.run(each)["seconds"] * 1e9 / entries
            )

    def two_readers() -> None:
        bench = _map("map", "get", entries, CPUS)
        found["two readers"].append(bench.run("whole")["seconds"] * 1e9 / entries)

    def with_writer() -> None:
        bench = MapBench("map", "get", entries, 8, False, TIER, [CPUS[0]], 1, CPUS[1])
        found["get with writer"].append(bench.run("whole")["seconds"] * 1e9 / entries)

    def touched() -> None:
        bench = MapBench("map", "insert", entries, 8, False, TOUCHED, [CPUS[0]], 1)
        found["insert, touched pages"].append(bench.run("whole")["seconds"] * 1e9 / entries)

    def independent(cpus: tuple[int, ...], name: str) -> None:
        loads = AccessProbe(TIER, size, list(cpus))
        ran = loads.run("random", 64, 0, 1, 0, False, list(cpus), _SAMPLE_NS, number)
        found[name].append(ran["seconds"] * 1e9 / (ran["counted_bytes"] / 64))

    def bounds() -> None:
        independent(CPUS[:1], "independent bound")
        independent(CPUS, "independent bound, two")
        chase = LatencyProbe(TIER, size, CPUS[0])
        chase.prepare(size, 64, number, _WARM_STEPS)
        found["read bound"].append(chase.sample_chains(1, _SAMPLE_NS)["latency_ns"])
        del chase
        stores = PersistenceProbe(TIER, size, CPUS[0])
        found["write bound"].append(stores.sample("clwb", 64, 1, _SAMPLE_NS)["fence_ns"])

    operations("map", "insert")  # first: it gives the size of the pool
    todo: list[Callable[[], None]] = [bounds, touched, two_readers, with_writer]
    todo += [
        lambda kind=kind, op=op: operations(kind, op)  # type: ignore[misc]
        for kind in kinds
        for op in ("insert", "get", "remove")
        if (kind, op) != ("map", "insert")
    ]
    random.shuffle(todo)
    for each in todo:
        each()
    return size


def _map(kind: str, operation: str, entries: int, cpus: tuple[int, ...] = CPUS[:1]) -> MapBench:
    tier = "dram" if kind == "dram" else TIER
    return MapBench(kind, operation, entries, 8, False, tier, list(cpus), 1)


def _text(value: Estimate) -> str:
    return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"


if __name__ == "__main__":
    main(int(float(sys.argv[1])), int(sys.argv[2]), sys.argv[3:] or ["map", "dram", "map_rp"])
