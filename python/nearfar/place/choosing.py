"""Which sites stay near, budget by budget: chosen site by site, then judged together.

What a site gains is told by two passes of the core model, all near and all far. These gains choose
by knapsack; the model then runs each choice as a whole, so that what sites do to each other counts:
waits that overlap are not counted twice. On the curve, a choice that is no better than one with
less near memory is replaced by that one.

Near memory that was asked for is there to be used: of choices that are as fast, within half a
percent, the one is taken that leaves far memory least to do. What the core hides of it still costs
energy, wear and the bandwidth of others. So sites are chosen by their gains, and by gains to which
a twentieth, or all, of the time is added that their lines hold far memory. What is left over is
room for the sites of a larger input: a site that makes the run no faster has to spare a share of
far memory's work that is 15 % of its share of near memory at least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nearfar.place.costing import Cost, Coster, SiteCost
from nearfar.place.figures import Memory
from nearfar.place.knapsack import by_density, exactly, most_bytes
from nearfar.place.traced import Traced

#: Budgets of the curve between none and the whole heap.
POINTS = 9
_PAGE = 4096
_AS_FAST = 1.005
_ROOM = 0.15
_HIDDEN = (1.0, 0.05, 0.0)


@dataclass(frozen=True)
class Point:
    """A budget, the sites (by number) that stay near within it, and what that costs."""

    budget: int
    near: frozenset[int]
    near_bytes: int
    cost: Cost
    exact: bool
    far_busy_ns: float  # that lines of the heap hold far memory


@dataclass(frozen=True)
class Choices:
    """All data near, all far, the heap alone far; gains by site; points by rising budget, and all
    that were judged."""

    all_near: Cost
    all_far: Cost
    heap_far: Cost
    gains: dict[int, float]
    points: tuple[Point, ...]
    judged: tuple[Point, ...]

    def slowdown(self, cost: Cost) -> float:
        """Against all near."""
        return cost.time_ns / self.all_near.time_ns if self.all_near.time_ns else 1.0

    def best_within(self, budget: int) -> Point:
        """Of what is as fast as the fastest whose near memory fits, what leaves far memory least to
        do for the near memory that it takes."""
        fitting = [point for point in self.judged if point.near_bytes <= budget]
        fastest = min(point.cost.time_ns for point in fitting)
        as_fast = [point for point in fitting if point.cost.time_ns <= _AS_FAST * fastest]
        work = max(point.far_busy_ns for point in self.judged) or 1.0
        return min(as_fast, key=lambda point: (
            point.far_busy_ns / work + _ROOM * point.near_bytes / max(budget, 1), point.cost.time_ns
        ))  # fmt: skip


def choose(traced: Traced, coster: Coster, far: Memory, budget: int | None) -> Choices:
    """The curve over budgets, with ``budget`` among them."""
    heap = [site.number for site in traced.heap()]
    everything = range(len(traced.sites))
    all_near, all_far, heap_far = coster.costs(far, [[], everything, heap])
    gains = {n: all_far.sites[n].stall_ns - all_near.sites[n].stall_ns for n in heap}
    busy = {n: _busy_ns(all_far.sites[n], far) for n in heap}
    budgets = _budgets(most_bytes(frozenset(heap), traced.sizes), budget)
    chosen: dict[tuple[frozenset[int], int], bool] = {(frozenset(heap), budgets[-1]): True}
    for weight in _HIDDEN:  # the last one says what is exact
        spared = {n: max(gain, 0.0) + weight * busy[n] for n, gain in gains.items()}
        chosen |= _candidates(traced, spared, budgets)
    sets = {near: [n for n in heap if n not in near] for near, _ in chosen}
    costs = dict(zip(sets, coster.costs(far, list(sets.values())), strict=True))
    points = [
        Point(size, near, int(most_bytes(near, traced.sizes)), costs[near], exact,
              sum(busy[n] for n in sets[near]))
        for (near, size), exact in chosen.items()
    ]  # fmt: skip
    positive = {n: gain for n, gain in gains.items() if gain > 0}
    return Choices(all_near, all_far, heap_far, positive, tuple(_falling(points)), tuple(points))


def _busy_ns(site: SiteCost, far: Memory) -> float:
    """How long its lines hold far memory."""
    return (site.reads + site.prefetches) * far.line + site.writes * far.write_line


def _budgets(heap_bytes: float, asked: int | None) -> list[int]:
    """From none to the whole heap, closer together where near memory is little."""
    top = max(math.ceil(heap_bytes), _PAGE)
    steps = {int(top * (i / POINTS) ** 2) // _PAGE * _PAGE for i in range(1, POINTS)}
    return sorted({0, top, *steps, *([min(asked, top)] if asked is not None else [])})


def _candidates(
    traced: Traced, gains: Mapping[int, float], budgets: Sequence[int]
) -> dict[tuple[frozenset[int], int], bool]:
    """By density and exactly, for each budget; True where no choice gains more."""
    numbers = [n for n, gain in gains.items() if gain > 0]
    benefit = [gains[n] for n in numbers]
    sizes = traced.sizes[numbers]
    found = {}
    for budget in budgets:
        best = exactly(benefit, sizes, budget)
        found[frozenset(numbers[i] for i in best.near), budget] = best.exact
        dense = frozenset(numbers[i] for i in by_density(benefit, sizes, budget))
        found.setdefault((dense, budget), False)
    return found


def _falling(points: Sequence[Point]) -> list[Point]:
    """One point a budget: the fastest of all that fit it, that with least near memory first."""
    made = []
    for budget in sorted({point.budget for point in points}):
        fitting = [point for point in points if point.near_bytes <= budget]
        best = min(fitting, key=lambda point: (point.cost.time_ns, point.near_bytes))
        made.append(replace(best, budget=budget))
    return made
