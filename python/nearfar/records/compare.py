"""The same figures of two runs, or of two profiles, side by side.

Figures match where key, place and conditions are the same. A figure is *worse* where a higher (or
lower) value is worse by its key, the change is beyond the threshold, and the intervals, where both
sides have one, lie apart. Of hundreds of unchanged figures some lie apart by chance, so the chance
of each, corrected for their number, must be below 5 %, too, where intervals and repeats are known.
Of several runs before, a figure is their median, within all that their intervals hold. Keys that
tell no direction (sizes, counts, ratios) are never worse; nor is an extreme of several repeats,
which has no interval: the median beside it decides.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from nearfar.records.profile import Datasheet
from nearfar.records.run import Run
from nearfar.records.shape import EXTREMES, Provenance
from nearfar.records.walk import Conditions, Quantity, numbers

if TYPE_CHECKING:
    from nearfar.stats import Bounded

#: Conditions that may differ between two runs of the same measurement.
_FREE = frozenset({
    "cpu", "cpus", "path", "size_bytes", "effective_last_cache_bytes",
    "effective_last_cache_source", "reported_last_cache_bytes", "chaser_cpu", "traffic_cpus",
    "interleave_bytes", "stalls",
})  # fmt: skip

#: Figures about the check of the results and the means of timing, not about the memory.
_NOT_COMPARED = frozenset({"worst_error", "timer_ns"})

#: Sections that walk one region beyond every cache: how far beyond depends on the cache found.
_BEYOND_CACHE = ("parallelism", "blocks", "tails")

_HIGHER_IS_BETTER = ("bytes_per_s", "operations_per_s", "endurance_writes", "frequency_hz",
                     "parallelism")  # fmt: skip
_LOWER_IS_BETTER = ("_ns", "_s", "_J", "_pJ_per_bit", "_mA", "faults_per_gib", "price_per_gib")

#: Times of which neither more nor less is better by itself.
_NEUTRAL = frozenset({"clock_ns", "tREFI_ns"})

#: A change is believed where it would come by chance less often than this.
_CHANCE = 0.05

Direction = Literal["higher", "lower"]


def better(key: str) -> Direction | None:
    """Which values of a key are better; None where neither is."""
    if key.endswith(_HIGHER_IS_BETTER):
        return "higher"
    return "lower" if key not in _NEUTRAL and key.endswith(_LOWER_IS_BETTER) else None


@dataclass(frozen=True)
class Change:
    """One figure on both sides."""

    now: Quantity
    before: Quantity

    def ratio(self) -> float:
        """Now over before; 1 where both are zero."""
        if self.before.value == 0:
            return 1.0 if self.now.value == 0 else math.inf
        return self.now.value / self.before.value

    def agree(self) -> bool | None:
        """Whether the intervals overlap; None where one of them is not recorded."""
        if self.now.interval is None or self.before.interval is None:
            return None
        (low, high), (past_low, past_high) = self.now.interval, self.before.interval
        return low <= past_high and past_low <= high

    def extreme(self) -> bool:
        """Whether a side is the best or the largest of its repeats."""
        sides = (self.now.provenance, self.before.provenance)
        return any(entry is not None and entry.statistic in EXTREMES for entry in sides)

    def size(self) -> float:
        """How far it moved either way: the logarithm of the ratio, without its sign."""
        ratio = self.ratio()
        return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf

    def worse(self, threshold: float) -> bool:
        """Whether it got worse by more than ``threshold`` (a share of the value before)."""
        direction = better(self.now.key)
        if direction is None or self.agree() or self.extreme():
            return False
        loss = 1 - self.ratio() if direction == "higher" else self.ratio() - 1
        return loss > threshold * (1 + 1e-9)  # a loss of the threshold itself is not beyond it


@dataclass(frozen=True)
class Comparison:
    """All figures of two sides: the matched ones, and those of one side alone."""

    changes: list[Change]
    only_before: list[Quantity]
    only_now: list[Quantity]

    @cached_property
    def chances(self) -> dict[int, float]:
        """By ``id`` of a change: the chance that it is none, corrected for how many are compared;
        absent where it cannot be told, for want of an interval or of repeats."""
        from nearfar import stats

        told = [(id(change), pair) for change in self.changes if (pair := _bounded(change))]
        corrected = stats.holm(stats.chances([pair for _, pair in told]))
        return {key: chance for (key, _), chance in zip(told, corrected, strict=True)}

    def worse(self, threshold: float) -> list[Change]:
        """Figures that got worse beyond the threshold, and not by chance; the largest first."""
        found = [
            change for change in self.changes
            if change.worse(threshold) and self.chances.get(id(change), 0.0) < _CHANCE
        ]  # fmt: skip
        return sorted(found, key=lambda change: -change.size())


def _bounded(change: Change) -> tuple[Bounded, Bounded] | None:
    """Both sides for a test, of figures that tell better from worse."""
    from nearfar.stats import Bounded

    sides = [
        Bounded(side.value, *side.interval, side.provenance.samples)
        for side in (change.before, change.now)
        if side.interval and side.provenance and side.provenance.samples > 1 and side.value > 0
    ]
    return (sides[0], sides[1]) if len(sides) == 2 and better(change.now.key) else None


def compare_runs(now: Run, before: Run | Sequence[Run]) -> Comparison:
    """Figures that runs took under the same conditions; several before are taken together."""
    runs = [before] if isinstance(before, Run) else before
    past: dict[Hashable, list[Quantity]] = {}
    for run in runs:
        for quantity in _of_run(run):
            past.setdefault(_identity_in_run(quantity), []).append(quantity)
    together = [_merged(quantities) for quantities in past.values()]
    return _match(_of_run(now), together, _identity_in_run)


def _merged(quantities: Sequence[Quantity]) -> Quantity:
    """The median of several runs, within the least and the most that their intervals hold."""
    *_, last = quantities
    if len(quantities) == 1:
        return last
    intervals = [quantity.interval for quantity in quantities]
    bounds = [interval for interval in intervals if interval is not None]
    hull = (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else None
    value = statistics.median(quantity.value for quantity in quantities)
    return replace(last, value=value, interval=hull if len(bounds) == len(intervals) else None)


def compare_sheets(now: Datasheet, before: Datasheet) -> Comparison:
    """Figures that two profiles, or two hosts, have in common."""
    return _match(_of_sheet(now), _of_sheet(before), lambda q: (q.key, q.conditions))


def _match(
    now: Iterable[Quantity], before: Iterable[Quantity], identity: Callable[[Quantity], Hashable]
) -> Comparison:
    past = {identity(quantity): quantity for quantity in before}
    present = {identity(quantity): quantity for quantity in now}
    return Comparison(
        [Change(present[key], past[key]) for key in present if key in past],
        [quantity for key, quantity in past.items() if key not in present],
        [quantity for key, quantity in present.items() if key not in past],
    )


def _of_run(run: Run) -> Iterator[Quantity]:
    for number in numbers(run.sections):
        if isinstance(number, Quantity) and number.key not in _NOT_COMPARED:
            yield number


def _identity_in_run(quantity: Quantity) -> Hashable:
    beyond = quantity.path.startswith(_BEYOND_CACHE)
    free = _FREE | {"region_bytes"} if beyond else _FREE
    held = tuple(pair for pair in quantity.conditions if pair[0] not in free)
    origin = quantity.provenance.origin.value if quantity.provenance else ""
    threads = next((str(v).count(",") for k, v in quantity.conditions if k == "cpus"), 0)
    path = quantity.path.replace("/sweep", "")  # the run at the top may be one of its sweep
    return path, quantity.key, held, threads, origin


def _of_sheet(sheet: Datasheet) -> Iterator[Quantity]:
    """Every value and every point; the coordinates of a point are its conditions."""
    for key, figure in sheet.figures.items():
        made = figure.origin
        provenance = Provenance(origin=made, statistic="claim", samples=0) if made else None
        if figure.value is not None:
            interval = (figure.low, figure.high) if figure.low is not None else None
            yield Quantity("", key, figure.value, (), interval, provenance)  # type: ignore[arg-type]
        for index, (*where, value) in enumerate(figure.points or []):
            conditions: Conditions = tuple(zip(figure.x or [], where, strict=True))
            interval = figure.ranges[index] if figure.ranges else None
            yield Quantity("", key, value, conditions, interval, provenance)
