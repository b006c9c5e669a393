"""The malloc tests of the Seoul 2014 thesis: each test in a fresh process, allocators in turn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nearfar._native import tier_capacity_bytes
from nearfar.errors import MachineError
from nearfar.measure import allocators
from nearfar.measure.allocators import GLIBC, Allocator
from nearfar.measure.session import Effort, Samples, Session
from nearfar.process.helpers import usage_of
from nearfar.records.allocators import AllocatorFacts, MallocResult, MallocRow
from nearfar.records.choices import MallocTest
from nearfar.records.run import NO_TIME, Skipped
from nearfar.stats import Estimate, median, ratio_of_pairs
from nearfar.units import PAGE_BYTES, format_size

TESTS: tuple[MallocTest, ...] = ("small", "large", "free-loop", "half-free-loop", "warm")
#: Number of blocks in a round, as in the thesis; in the warm loop, of pairs.
COUNTS = {
    "small": 1_000_000,
    "large": 1_000_000,
    "free-loop": 10_000,
    "half-free-loop": 10_000,
    "warm": 5_000_000,
}
#: Time between the last free and the second memory reading, and every how many repeats have one.
SETTLE_S, SETTLED_REPEATS = 1.0, 5
#: Memory of a block relative to its touched page or mean size: tables, headers, rounding.
_MORE = 1.3

#: A test with an allocator on so many threads.
Case = tuple[MallocTest, int, str]
#: A case by clock: cpu or wall.
Point = tuple[MallocTest, int, str, str]


def point_name(point: Point) -> str:
    """Name of a point for output."""
    test, threads, allocator, clock = point
    return f"{test}, {allocator}, {threads} thread{'s' * (threads > 1)}, {clock} time"


@dataclass
class Seen:
    """Other results of a repeat: peak memory, and in some repeats memory after another second."""

    peak: dict[Case, int] = field(default_factory=dict)
    settled: dict[Case, int] = field(default_factory=dict)
    pairs: dict[Case, int] = field(default_factory=dict)
    library: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MallocPlan:
    """Tests by threads and allocators, glibc among them. Values: seconds."""

    tests: tuple[MallocTest, ...]
    threads: tuple[int, ...]
    allocators: tuple[Allocator, ...]
    cpus: tuple[int, ...]
    first_seed: int
    count: int | None = None

    @property
    def grid(self) -> Sequence[Point]:
        """Tests, by threads, by allocators, by clock."""
        return [
            (test, threads, allocator.name, clock)
            for test in self.tests
            for threads in self.threads
            for allocator in self.allocators
            for clock in ("cpu", "wall")
        ]

    def blocks(self, test: MallocTest) -> int:
        """Blocks of a round, over all threads."""
        return self.count or COUNTS[test]

    def check_room(self) -> None:
        """Reject tests whose touched pages do not fit in memory, before anything is allocated."""
        touched = {
            "small": 256,
            "large": PAGE_BYTES,
            "free-loop": PAGE_BYTES,
            "half-free-loop": 6 * PAGE_BYTES,
        }
        room = tier_capacity_bytes("dram")
        for test in self.tests:
            wanted = self.blocks(test) * touched.get(test, 0) * _MORE
            if wanted > room:
                raise MachineError(
                    f"test {test} touches about {format_size(wanted)}, and {format_size(room)} "
                    "of memory are free",
                    "use a smaller --blocks, or leave the test out",
                )

    def epoch(self, seed: int) -> Samples[Point]:
        """Run each case once; allocators of a test and number of threads in direct succession."""
        seen = Seen()
        samples: Samples[Point] = Samples(extras=[seen])
        settle = (seed - self.first_seed) % SETTLED_REPEATS == 0
        order = random.Random(seed)
        groups = [(test, threads) for test in self.tests for threads in self.threads]
        order.shuffle(groups)
        for test, threads in groups:
            for allocator in order.sample(self.allocators, len(self.allocators)):
                self._run(allocator, (test, threads, allocator.name), seed, settle, samples)
        return samples

    def _run(
        self, allocator: Allocator, case: Case, seed: int, settle: bool, samples: Samples[Point]
    ) -> None:
        test, threads, name = case
        team = [self.cpus[i % len(self.cpus)] for i in range(threads)]
        figures = allocators.run(
            allocator,
            test,
            count=self.blocks(test),
            seed=seed,
            cpus=team,
            settle_s=SETTLE_S if settle else 0.0,
        )
        # Threads that share a CPU, or wait for a lock, have little CPU time without a disturbance.
        usages = [usage_of(figures)] if threads == 1 else []
        samples.add((*case, "cpu"), int(figures["cpu_ns"]) * 1e-9, usages)
        samples.add((*case, "wall"), int(figures["wall_ns"]) * 1e-9, [])
        seen: Seen = samples.extras[0]
        seen.peak[case] = int(figures["peak_bytes"])
        seen.pairs[case] = int(figures["pairs"])
        seen.library[name] = figures["library"]
        if settle:
            seen.settled[case] = int(figures["settled_bytes"])

    def smaller(self) -> MallocPlan | None:
        """First keep the smallest and the largest number of threads; then drop the large test."""
        if len(self.threads) > 1:
            kept = (self.threads[0], self.threads[-1]) if len(self.threads) > 2 else ()
            return replace(self, threads=kept or self.threads[:1])
        if len(self.tests) > 1 and "large" in self.tests:
            return replace(self, tests=tuple(test for test in self.tests if test != "large"))
        return None


def measure(
    session: Session, plan: MallocPlan, effort: Effort
) -> tuple[MallocResult, list[Skipped]]:
    """Run the plan; the first test of the first allocator that is not glibc is the result."""
    samples, dropped = session.repeat("malloc", "s", plan, effort, label=point_name)
    cases = list(dict.fromkeys(point[:3] for point in samples.series))
    wanted = [case for case in dict.fromkeys(p[:3] for p in plan.grid) if case in cases]
    rows = [_row(session, plan, samples, case) for case in wanted]
    libraries = samples.extras[0].library
    facts = [AllocatorFacts(allocator=a.name, library=libraries[a.name]) for a in plan.allocators]
    first = next((row for row in rows if row.allocator != GLIBC), rows[0])
    skipped = [
        Skipped(section="malloc", what=f"test {test} on {threads} threads", why=NO_TIME)
        for test, threads in dict.fromkeys(point[:2] for point in dropped)
    ]
    return MallocResult(**dict(first), rows=rows, allocators=facts), skipped


def _row(session: Session, plan: MallocPlan, samples: Samples[Point], case: Case) -> MallocRow:
    test, threads, name = case
    tier = next(a.origin_tier for a in plan.allocators if a.name == name)
    shaped = session.figures(tier, persistent=False, **_figures(samples, case))
    return MallocRow(
        **shaped,
        test=test,
        allocator=name,
        threads=threads,
        oversubscribed=threads > len(plan.cpus),
        count=plan.blocks(test),
        pairs=samples.extras[0].pairs[case],
    )


def _figures(samples: Samples[Point], case: Case) -> dict[str, Estimate]:
    test, threads, name = case
    cpu, wall = samples.of((*case, "cpu")), samples.of((*case, "wall"))
    seen: list[Seen] = samples.extras
    peaks = [float(repeat.peak[case]) for repeat in seen]
    after = [(r.settled[case], r.peak[case]) for r in seen if case in r.settled]
    figures = {
        "cpu_time_s": median(cpu),
        "wall_time_s": median(wall),
        "peak_memory_bytes": median(peaks),
        "settled_memory_bytes": median([float(settled) for settled, _ in after]),
        "settled_share": median([settled / max(peak, 1) for settled, peak in after]),
    }
    if test == "warm":
        each = seen[0].pairs[case] / threads
        figures["pair_time_ns"] = median([seconds / each * 1e9 for seconds in wall])
    if name != GLIBC:
        other: Case = (test, threads, GLIBC)
        figures |= {
            "ratio_to_glibc": ratio_of_pairs(cpu, samples.of((*other, "cpu"))),
            "wall_ratio_to_glibc": ratio_of_pairs(wall, samples.of((*other, "wall"))),
            "peak_ratio_to_glibc": ratio_of_pairs(peaks, [float(r.peak[other]) for r in seen]),
        }
    return figures
