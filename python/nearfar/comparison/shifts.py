"""Shifts: how much a whole section of two runs got worse.

A single figure may differ by chance, or stay within its interval while the whole section moves
with it. So each section has one more figure: the geometric mean of how many times worse its figures
got, with a bootstrap interval over them (BCa). Figures of one section share their disturbances, so
this interval describes the section as it was run, not future runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from nearfar.comparison.changes import Change
from nearfar.comparison.direction import better
from nearfar.comparison.figures import compare_runs
from nearfar.records.run import Run
from nearfar.records.shape import MIN_REPEATS

#: Fewer figures give no useful interval.
MIN_FIGURES = MIN_REPEATS


@dataclass(frozen=True)
class Shift:
    """A section: ``cost`` above 1 is worse, 1.1 by 10 %; ``low`` and ``high`` bound it at 95 %."""

    section: str
    figures: int
    cost: float
    low: float
    high: float

    def worse(self, threshold: float) -> bool:
        """Whether the entire interval is worse by more than the threshold."""
        return self.low > 1 + threshold

    def better(self, threshold: float) -> bool:
        """Whether the entire interval is better by more than the threshold."""
        return self.high < 1 / (1 + threshold)

    def moved(self) -> bool:
        """Whether the interval excludes no change."""
        return not self.low <= 1 <= self.high


def shifts_of_runs(now: Run, before: Sequence[Run]) -> list[Shift]:
    """Return the sections of a run compared with several runs: the median shift, with an interval
    that spans all of theirs, so that a section is worse only if it is worse than every base run."""
    found: dict[str, list[Shift]] = {}
    for run in before:
        for shift in shifts(compare_runs(now, run).changes):
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
    """Return sections with enough figures, in the order of the record."""
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
    """Return the logarithm of how many times worse; None without direction or for an extreme."""
    direction, ratio = better(change.now.key), change.ratio()
    if direction is None or change.extreme() or not 0 < ratio < math.inf:
        return None
    return math.log(ratio) if direction == "lower" else -math.log(ratio)


def _shift(section: str, costs: Sequence[float]) -> Shift:
    from nearfar.stats import mean

    found = mean(costs)
    cost, low, high = (math.exp(x) for x in (found.value, found.low, found.high))
    return Shift(section, len(costs), cost, low, high)
