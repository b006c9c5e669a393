"""Which sites stay near for each budget: chosen site by site, then evaluated together.

Two passes of the core model, all near and all far, give the gain of each site. A knapsack over
these gains makes the choices; the model then runs each choice as a whole, so that overlapping
stalls are not counted twice. On the curve, a choice that is not better than one with less near
memory is replaced by that one.

The whole near budget may be used. Choices within 0.02 % of the fastest count as equally fast. Of
these, the one with the least b + 0.15 n is taken: b is the busy time of far memory and n the near
memory that is used, each as a fraction of its maximum. Far accesses that the core hides still cost
energy, wear and bandwidth, so sites are chosen by three searches: each adds the time for which the
lines of a site occupy far memory to its gain, with a weight of 0, 1/20 or 1. Near memory that is
left unused is a reserve for larger inputs: a site without effect on the run time stays near only if
the fraction of b that it saves is at least 15 % of the fraction of near memory that it takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nearfar.place.costing import Cost, CostModel, SiteCost
from nearfar.place.knapsack import by_density, exactly, max_bytes
from nearfar.place.memory_costs import Memory
from nearfar.place.program_data import ProgramData
from nearfar.units import PAGE_BYTES

#: Intervals of the curve, from zero to all movable memory.
POINTS = 9
_AS_FAST = 1.0002
_ROOM = 0.15
_HIDDEN = (1.0, 0.05, 0.0)


@dataclass(frozen=True)
class Point:
    """A budget, the near sites (by number) within it, and the cost."""

    budget: int
    near: frozenset[int]
    near_bytes: int
    cost: Cost
    exact: bool
    far_busy_ns: float  # for which lines of movable memory occupy far memory


@dataclass(frozen=True)
class Choices:
    """Costs of all data near, all far, and the movable memory far; gains by site; points by rising
    budget, and all evaluated points."""

    all_near: Cost
    all_far: Cost
    movable_far: Cost
    gains: dict[int, float]
    far_ns: float  # of an access
    points: tuple[Point, ...]
    judged: tuple[Point, ...]

    def slowdown(self, cost: Cost) -> float:
        """Slowdown against all near."""
        return cost.time_ns / self.all_near.time_ns if self.all_near.time_ns else 1.0

    def best_within(self, budget: int) -> Point:
        """The best of the fastest choices within the budget: that with the least far work for its
        near memory."""
        fitting = [point for point in self.judged if point.near_bytes <= budget]
        fastest = min(point.cost.time_ns for point in fitting)
        as_fast = [point for point in fitting if point.cost.time_ns <= _AS_FAST * fastest]
        work = max(point.far_busy_ns for point in self.judged) or 1.0
        return min(
            as_fast,
            key=lambda point: (
                point.far_busy_ns / work + _ROOM * point.near_bytes / max(budget, 1),
                point.cost.time_ns,
            ),
        )


def choose(data: ProgramData, coster: CostModel, far: Memory, budget: int | None) -> Choices:
    """The curve over budgets, including ``budget``."""
    movable = [site.number for site in data.movable()]
    everything = range(len(data.sites))
    all_near, all_far, movable_far = coster.costs(far, [[], everything, movable])
    gains = {n: all_far.sites[n].added_ns(all_near.sites[n]) for n in movable}
    busy = {n: _busy_ns(all_far.sites[n], far) for n in movable}
    budgets = _budgets(max_bytes(frozenset(movable), data.sizes), budget)
    chosen = {(frozenset(movable), budgets[-1]): True}
    for weight in _HIDDEN:  # the last one decides what is exact
        spared = {n: max(gain, 0.0) + weight * busy[n] for n, gain in gains.items()}
        chosen |= _candidates(data, spared, budgets)
    sets = {near: [n for n in movable if n not in near] for near, _ in chosen}
    costs = dict(zip(sets, coster.costs(far, list(sets.values())), strict=True))
    points = [
        Point(
            size,
            near,
            int(max_bytes(near, data.sizes)),
            costs[near],
            exact,
            sum(busy[n] for n in sets[near]),
        )
        for (near, size), exact in chosen.items()
    ]
    positive = {n: gain for n, gain in gains.items() if gain > 0}
    whole = (all_near, all_far, movable_far)
    return Choices(*whole, positive, far.latency, tuple(_falling(points)), tuple(points))


def _busy_ns(site: SiteCost, far: Memory) -> float:
    """Time for which the lines of the site occupy far memory."""
    return (site.reads + site.prefetches) * far.line + site.writes * far.write_line


def _budgets(movable_bytes: float, asked: int | None) -> list[int]:
    """Budgets from zero to all movable memory, denser for small ones."""
    top = max(math.ceil(movable_bytes), PAGE_BYTES)
    steps = {int(top * (i / POINTS) ** 2) // PAGE_BYTES * PAGE_BYTES for i in range(1, POINTS)}
    return sorted({0, top, *steps, *([min(asked, top)] if asked is not None else [])})


def _candidates(
    data: ProgramData, gains: Mapping[int, float], budgets: Sequence[int]
) -> dict[tuple[frozenset[int], int], bool]:
    """Choices by density and exact ones, for each budget; True if no choice gains more."""
    numbers = [n for n, gain in gains.items() if gain > 0]
    benefit = [gains[n] for n in numbers]
    sizes = data.sizes[numbers]
    found = {}
    for budget in budgets:
        best = exactly(benefit, sizes, budget)
        found[frozenset(numbers[i] for i in best.near), budget] = best.exact
        dense = frozenset(numbers[i] for i in by_density(benefit, sizes, budget))
        found.setdefault((dense, budget), False)
    return found


def _falling(points: Sequence[Point]) -> list[Point]:
    """One point a budget: the fastest that fits it, of equals that with least near memory."""
    made = []
    for budget in sorted({point.budget for point in points}):
        fitting = [point for point in points if point.near_bytes <= budget]
        best = min(fitting, key=lambda point: (point.cost.time_ns, point.near_bytes))
        made.append(replace(best, budget=budget))
    return made
