"""Which sites stay near, budget by budget: chosen site by site, then judged together.

What a site gains is told by two passes of the core model, all near and all far. These gains choose
by knapsack; the model then runs each choice as a whole, so that what sites do to each other counts:
waits that overlap are not counted twice, and a choice that is no better than one with less near
memory is replaced by that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.place.costing import Cost, Coster
from nearfar.place.figures import Memory
from nearfar.place.knapsack import by_density, exactly, most_bytes
from nearfar.place.traced import Traced

#: Budgets of the curve between none and the whole heap.
POINTS = 9
_PAGE = 4096


@dataclass(frozen=True)
class Point:
    """A budget, the sites (by number) that stay near within it, and what that costs."""

    budget: int
    near: frozenset[int]
    near_bytes: int
    cost: Cost
    exact: bool


@dataclass(frozen=True)
class Choices:
    """All data near, all far, the heap alone far; gains by site; points by rising budget."""

    all_near: Cost
    all_far: Cost
    heap_far: Cost
    gains: dict[int, float]
    points: tuple[Point, ...]

    def slowdown(self, cost: Cost) -> float:
        """Against all near."""
        return cost.time_ns / self.all_near.time_ns if self.all_near.time_ns else 1.0

    def best_within(self, budget: int) -> Point:
        """The fastest point whose near memory fits a budget."""
        fitting = [point for point in self.points if point.near_bytes <= budget]
        return min(fitting, key=lambda point: (point.cost.time_ns, point.near_bytes))


def choose(traced: Traced, coster: Coster, far: Memory, budget: int | None) -> Choices:
    """The curve over budgets, with ``budget`` among them."""
    heap = [site.number for site in traced.heap()]
    everything = range(len(traced.sites))
    near, all_far, heap_far = coster.costs(far, [[], everything, heap])
    gains = {n: all_far.sites[n].stall_ns - near.sites[n].stall_ns for n in heap}
    gains = {n: gain for n, gain in gains.items() if gain > 0}
    numbers = list(gains)
    budgets = _budgets(most_bytes(frozenset(heap), traced.sizes), budget)
    candidates = _candidates(traced, gains, numbers, budgets)
    far_sets = [[n for n in heap if n not in chosen] for _, chosen, _ in candidates]
    costs = coster.costs(far, far_sets)
    points = [
        Point(size, chosen, int(most_bytes(chosen, traced.sizes)), cost, exact)
        for (size, chosen, exact), cost in zip(candidates, costs, strict=True)
    ]
    return Choices(near, all_far, heap_far, gains, tuple(_falling(points)))


def _budgets(heap_bytes: float, asked: int | None) -> list[int]:
    """From none to the whole heap, closer together where it is small."""
    top = max(int(heap_bytes), _PAGE)
    steps = {int(top * (i / POINTS) ** 2) // _PAGE * _PAGE for i in range(1, POINTS)}
    return sorted({0, top, *steps, *([min(asked, top)] if asked is not None else [])})


def _candidates(
    traced: Traced, gains: dict[int, float], numbers: Sequence[int], budgets: Sequence[int]
) -> list[tuple[int, frozenset[int], bool]]:
    """By density and exactly, for each budget."""
    found = []
    benefit = [gains[n] for n in numbers]
    sizes = traced.sizes[list(numbers)]
    for budget in budgets:
        best = exactly(benefit, sizes, budget)
        found.append((budget, frozenset(numbers[i] for i in best.near), best.exact))
        dense = by_density(benefit, sizes, budget)
        if dense != best.near:
            found.append((budget, frozenset(numbers[i] for i in dense), False))
    return found


def _falling(points: Sequence[Point]) -> list[Point]:
    """One point a budget: the fastest of all that fit it, that with least near memory first."""
    made = []
    for budget in sorted({point.budget for point in points}):
        fitting = [point for point in points if point.near_bytes <= budget]
        best = min(fitting, key=lambda point: (point.cost.time_ns, point.near_bytes))
        mine = best.exact and best.budget == budget
        made.append(Point(budget, best.near, best.near_bytes, best.cost, mine or best.exact))
    return made
