"""Changes of figures, and the verdict on each: worse, better or neither.

A figure is *worse* if all of these conditions hold:

- It changed in the bad direction of its key (``records.keys``) by more than the threshold.
- The intervals of both sides do not overlap, if both sides have one.
- Its p-value, corrected for the number of figures, is below 5 %, if intervals and numbers of
  repeats are known. Of hundreds of unchanged figures, a few have separate intervals by chance.

*Better* is defined the same way for the good direction. Four kinds of figures have no verdict:
those without a direction (sizes, counts, ratios, traffic); extremes of repeats, which have no
interval (the median of the same repeats is judged instead); other figures with too few repeats for
an interval; and computed figures that were zero, because a threshold is a fraction of the old
value. Counted events (such as fences) are the exception: a change from zero has a verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from nearfar.comparison.direction import better_of, is_count
from nearfar.records.figures import EXTREMES
from nearfar.records.numbers import Quantity

if TYPE_CHECKING:
    from nearfar.stats import Bounded

#: Largest corrected p-value of a change that is reported.
_CHANCE = 0.05

ChangeVerdict = Literal["worse", "better"]


@dataclass(frozen=True)
class Change:
    """One figure on both sides."""

    now: Quantity
    before: Quantity

    def shared(self) -> Quantity:
        """Return the new figure with the conditions that both sides have."""
        both = tuple(each for each in self.now.conditions if each in self.before.conditions)
        return replace(self.now, conditions=both)

    def ratio(self) -> float:
        """Return the new value over the old one; 1 if both are zero."""
        if self.before.value == 0:
            return 1.0 if self.now.value == 0 else math.inf
        return self.now.value / self.before.value

    def is_from_zero(self) -> bool:
        """Whether the old value is zero and the new one is not: there is no ratio."""
        return self.before.value == 0 != self.now.value

    def agree(self) -> bool | None:
        """Whether the intervals overlap; None if a side has no interval."""
        if self.now.interval is None or self.before.interval is None:
            return None
        (low, high), (past_low, past_high) = self.now.interval, self.before.interval
        return low <= past_high and past_low <= high

    def extreme(self) -> bool:
        """Whether one of the sides is an extreme (best, largest) of its repeats."""
        sides = (self.now.provenance, self.before.provenance)
        return any(entry is not None and entry.statistic in EXTREMES for entry in sides)

    def uncertain(self) -> bool:
        """Whether one of the sides has too few repeats for an interval."""
        return any(
            side.interval is None and side.provenance is not None and side.provenance.is_sampled()
            for side in (self.now, self.before)
        )

    def exact(self) -> bool:
        """Whether the figure has no interval because it is computed, not sampled: it repeats."""
        return self.agree() is None and not self.uncertain() and not self.extreme()

    def differs(self) -> bool:
        """Whether the sides differ by more than chance: intervals apart, or exact figures."""
        return self.agree() is False or (self.exact() and self.now.value != self.before.value)

    def size(self) -> float:
        """Return the size of the change: the absolute logarithm of the ratio.

        It is rounded, so that equal changes compare equal and keep their order in a sort.
        """
        ratio = self.ratio()
        return round(abs(math.log(ratio)), 9) if 0 < ratio < math.inf else math.inf

    def verdict_alone(self, threshold: float) -> ChangeVerdict | None:
        """Return the verdict by threshold and intervals; ``Comparison`` also checks the p-value.

        ``threshold``: a fraction of the old value. None if the change is smaller, the intervals
        overlap, or the figure is of a kind without a verdict (see the module).
        """
        direction = better_of(self.now)
        if direction is None or self.agree() or self.extreme() or self.uncertain():
            return None
        if self.is_from_zero() and self.exact() and not is_count(self.now.key):
            return None
        change = self.ratio() - 1
        if abs(change) <= threshold * (1 + 1e-9):  # exactly the threshold does not exceed it
            return None
        return "better" if (change > 0) == (direction == "higher") else "worse"


@dataclass(frozen=True)
class SettingChange:
    """A setting that differs between the sides, as text, such as the device of far memory."""

    path: str
    key: str
    now: str
    before: str


@dataclass(frozen=True)
class Comparison:
    """All figures of two sides: the matched ones, and those that only one side has.

    ``settings``: what differs in the settings of answers, whose figures match in spite of it.
    """

    changes: list[Change]
    only_before: list[Quantity]
    only_now: list[Quantity]
    settings: list[SettingChange] = field(default_factory=list)

    @cached_property
    def p_values(self) -> dict[int, float]:
        """Return the p-value of each change by its ``id``, corrected for the number of figures.

        A change has no entry if its intervals or numbers of repeats are missing.
        """
        from nearfar import stats

        bounded = [(id(change), pair) for change in self.changes if (pair := _bounded(change))]
        corrected = stats.holm(stats.p_values([pair for _, pair in bounded]))
        return {key: value for (key, _), value in zip(bounded, corrected, strict=True)}

    def worse(self, threshold: float) -> list[Change]:
        """Return figures that got worse significantly and beyond the threshold, largest first."""
        return self._judged("worse", threshold)

    def better(self, threshold: float) -> list[Change]:
        """Return figures that got better significantly and beyond the threshold, largest first."""
        return self._judged("better", threshold)

    def uncertain(self) -> int:
        """Return how many figures with a direction have too few repeats for an interval."""
        return sum(c.uncertain() and better_of(c.now) is not None for c in self.changes)

    def unjudged(self) -> bool:
        """Return whether no figure with a direction can be judged, for lack of repeats."""
        directed = [c for c in self.changes if better_of(c.now) is not None]
        return self.uncertain() > 0 and all(c.uncertain() or c.extreme() for c in directed)

    def _judged(self, verdict: ChangeVerdict, threshold: float) -> list[Change]:
        found = [
            change
            for change in self.changes
            if change.verdict_alone(threshold) == verdict
            and self.p_values.get(id(change), 0.0) < _CHANCE
        ]
        return sorted(found, key=lambda change: -change.size())


def _bounded(change: Change) -> tuple[Bounded, Bounded] | None:
    """Return both sides as input of a test; None without a direction, interval or repeats."""
    from nearfar.stats import Bounded

    sides = [
        Bounded(side.value, *side.interval, side.provenance.samples)
        for side in (change.before, change.now)
        if side.interval and side.provenance and side.provenance.samples > 1 and side.value > 0
    ]
    return (sides[0], sides[1]) if len(sides) == 2 and better_of(change.now) else None
