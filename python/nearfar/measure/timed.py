"""Times of operations on maps and sets of given sizes, as input and test of predictions.

Before timing, a set is filled and warmed up, and a map is looked up once completely. Insertions and
removals use a new map each time. Each epoch times each case once, in random order. Times are those
of the operations only, without loading and start.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nearfar import _native
from nearfar.measure.session import Samples

if TYPE_CHECKING:
    from nearfar.records.choices import IntsetMedium, MapOperation, MapType
    from nearfar.records.persistent_structures import IntsetStructure

#: Length of the warm-up and of the timed slices of sets. Most slices are so short that no
#: disturbance falls into them.
WARM_NS = 5_000_000
SLICE_NS = 2_000_000
SLICES = 9
#: Length of the slices of a list: at least 32 random walks.
SLICES_OF_WALKS = 18
#: Maximum number of maps created for one timing of insertions or removals.
MAX_MAPS = 5


@dataclass(frozen=True)
class MapWork:
    """Operations on a map, as in bench map; ``tier`` holds its pool."""

    type: MapType
    operation: MapOperation
    entries: int
    value_bytes: int
    tier: str


@dataclass(frozen=True)
class SetWork:
    """Look-ups and updates of a set, as in bench intset; ``tier`` holds its pool."""

    structure: IntsetStructure
    medium: IntsetMedium
    entries: int
    update_percent: int
    tier: str


@dataclass(frozen=True)
class Case:
    """A timed case; ``dependent``: each get waits for the previous one."""

    work: MapWork | SetWork
    dependent: bool = False

    @property
    def what(self) -> str:
        """Operation and structure, as text."""
        work = self.work
        if isinstance(work, MapWork):
            return f"{work.operation}{', dependent' if self.dependent else ''} in {work.type}"
        return f"{work.structure}, {work.medium}"

    @property
    def volatile(self) -> bool:
        """Whether the case is in ordinary memory, without a pool."""
        work = self.work
        return (work.type if isinstance(work, MapWork) else work.medium) == "dram"

    def __str__(self) -> str:
        return f"{self.what}, {self.work.entries:,} entries on {self.work.tier}"


@dataclass(frozen=True)
class TimedPlan:
    """Cases on one CPU. Values: ns per operation."""

    cases: tuple[Case, ...]
    cpu: int

    @property
    def grid(self) -> Sequence[Case]:
        """All cases."""
        return self.cases

    def epoch(self, seed: int) -> Samples[Case]:
        """Time each case once, in a random order."""
        samples: Samples[Case] = Samples()
        for case in random.Random(seed).sample(self.cases, len(self.cases)):
            work = case.work
            if isinstance(work, SetWork):
                ns, usages = _time_set(work, self.cpu, seed)
            else:
                pass_ = "dependent" if case.dependent else "whole"
                ns, usages = _time_map(work, self.cpu, seed, pass_)
            samples.add(case, ns, usages)
        return samples

    def smaller(self) -> TimedPlan | None:
        """None: no point can be dropped."""
        return None


def _place(tier: str) -> str:
    """The tier with pools populated before timing."""
    return f"{tier},populate" if _native.parse_tier(tier)["holds_pools"] else tier


def _time_set(work: SetWork, cpu: int, seed: int) -> tuple[float, list[_native.Member]]:
    bench = _native.IntsetBench(
        work.structure, work.medium, work.entries, work.update_percent, _place(work.tier), cpu, seed
    )
    bench.run(WARM_NS)
    slices = SLICES_OF_WALKS if work.structure == "list" else SLICES
    runs = [bench.run(SLICE_NS) for _ in range(slices)]
    times = [run["seconds"] * 1e9 / run["operations"] for run in runs]
    return float(np.median(times)), [member for run in runs for member in run["members"]]


def _time_map(work: MapWork, cpu: int, seed: int, pass_: str) -> tuple[float, list[_native.Member]]:
    def bench() -> _native.MapBench:
        return _native.MapBench(
            work.type,
            work.operation,
            work.entries,
            work.value_bytes,
            False,
            _place(work.tier),
            [cpu],
            seed,
        )

    times: list[float] = []
    members: list[_native.Member] = []
    gets = work.operation == "get"
    subject = bench()
    if gets:
        subject.run(pass_)
    while sum(times) * 1e9 < SLICE_NS * SLICES and (gets or len(times) < MAX_MAPS):
        if not gets and times:
            del subject
            subject = bench()
        run = subject.run(pass_)
        times.append(run["seconds"])
        members += run["members"]
    return float(np.median(times)) * 1e9 / work.entries, members
