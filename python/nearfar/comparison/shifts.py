"""Shifts: by which factor a whole section got worse between two runs.

A single figure may differ by chance. On the other hand, a section may get worse although each of
its figures stays within its interval. Each section therefore has a cost: the geometric mean of the
factors by which its figures got worse, with a bootstrap interval (BCa) over the figures. The cost
excludes computed figures: they do not vary by chance, so each is compared by itself. All
figures of a section had the same disturbances. The interval therefore holds for these runs only; it
does not predict other runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.comparison.changes import Change
from nearfar.comparison.direction import better_of
from nearfar.comparison.matching import compare_runs
from nearfar.records.figures import MIN_REPEATS
from nearfar.records.run import Run

#: Sections with fewer figures have no shift, because the interval would be useless.
MIN_FIGURES = MIN_REPEATS


@dataclass(frozen=True)
class Shift:
    """The change of a section: ``cost`` 1.1 means 10 % worse, with its 95 % interval.

    ``cost`` is the ratio of times, or the inverse ratio of rates. ``figures`` is their number.
    """

    section: str
    figures: int
    cost: float
    low: float
    high: float

    def worse(self, threshold: float) -> bool:
        """Whether the section is worse by more than the threshold, with its entire interval."""
        return self.low > 1 + threshold

    def better(self, threshold: float) -> bool:
        """Whether the section is better by more than the threshold, with its entire interval."""
        return self.high < 1 / (1 + threshold)

    def moved(self) -> bool:
        """Whether the interval does not contain 1."""
        return not self.low <= 1 <= self.high


def shifts_of_runs(
    now: Run, before: Sequence[Run], tiers: tuple[str, str] | None = None
) -> list[Shift]:
    """Return the shift of each section of a run against several base runs.

    It is the median of the shifts against each base run, with an interval that spans all of theirs.
    So a section is worse only if it is worse than in every base run. ``tiers``: as of
    ``compare_runs``.
    """
    found: dict[str, list[Shift]] = {}
    for run in before:
        for shift in shifts(compare_runs(now, run, tiers).changes):
            found.setdefault(shift.section, []).append(shift)
    return [
        Shift(
            section,
            min(s.figures for s in seen),
            statistics.median(s.cost for s in seen),
            min(s.low for s in seen),
            max(s.high for s in seen),
        )
        for section, seen in found.items()
    ]


def shifts(changes: Sequence[Change]) -> list[Shift]:
    """Return the shifts of all sections with enough figures, in the order of the record."""
    costs: dict[str, list[float]] = {}
    for change in changes:
        cost = _cost(change)
        if cost is not None:
            costs.setdefault(_section(change), []).append(cost)
    return [_shift(name, found) for name, found in costs.items() if len(found) >= MIN_FIGURES]


def _section(change: Change) -> str:
    first, *rest = change.now.path.split("/")
    return f"{first} {rest[0]}" if first == "sweep" and rest else first


def _cost(change: Change) -> float | None:
    """Return the logarithm of the factor by which a figure got worse; None for one not judged."""
    direction, ratio = better_of(change.now), change.ratio()
    if direction is None or change.extreme() or change.exact() or not 0 < ratio < math.inf:
        return None
    return math.log(ratio) if direction == "lower" else -math.log(ratio)


def _shift(section: str, costs: Sequence[float]) -> Shift:
    from nearfar.stats import mean

    found = mean(costs)
    cost, low, high = (math.exp(x) for x in (found.value, found.low, found.high))
    return Shift(section, len(costs), cost, low, high)
