"""Intervals of slowdowns, from the ranges of the model's inputs.

The model runs again for inputs at the ends of their ranges, one group at a time:

- the latencies of near and far memory (10 % if a profile has no range); page walks, first touches;
- cores with two thirds and one and a half times the assumed window and lines in flight;
- other calibrations of ``Work`` that fit the measured time of the program.

The interval spans all results. Two further inputs scale the loss as a whole, as factors: the misses
of caches at the ends of the last cache's range over those of the modeled one, and the measured time
of the program over that of its repeats. Limits: groups are varied one at a time, and a cache of
another size is taken to miss on the same sites.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nearfar.place.costing import Assumed, Coster
from nearfar.place.memory_costs import Core, Memory, PageWalk

_OTHER_CORE = 1.5


@dataclass(frozen=True)
class LossFactors:
    """Factors by which a loss may be smaller or larger than modeled."""

    least: float = 1.0
    most: float = 1.0

    def interval(self, slowdowns: Sequence[float]) -> tuple[float, float]:
        """The interval over variants of a slowdown; a gain is not scaled."""
        low, high = min(slowdowns), max(slowdowns)
        return (
            1 + (low - 1) * self.least if low > 1 else low,
            1 + (high - 1) * self.most if high > 1 else high,
        )

    def times(self, other: LossFactors) -> LossFactors:
        """Both causes at once."""
        return LossFactors(self.least * other.least, self.most * other.most)

    @staticmethod
    def of(ratios: Sequence[float]) -> LossFactors:
        """Factors at the ends of an input's range, next to 1 for its value."""
        return LossFactors(min([1.0, *ratios]), max([1.0, *ratios]))


def slowdowns(coster: Coster, far: Memory, placements: Sequence[list[int]]) -> list[list[float]]:
    """Slowdowns of the placements under each variant of the inputs."""
    made = []
    variants = list(_variants(coster, far))
    for near, *costs in coster.costs_under(far, [[], *placements], variants):
        made.append([cost.time_ns / near.time_ns if near.time_ns else 1.0 for cost in costs])
    return made


def _variants(coster: Coster, far: Memory) -> Iterator[Assumed]:
    core, work, near = coster.core, coster.work, coster.near
    for each in _other_cores(core):
        yield Assumed(each, far.latency, work)
    together = far.latency == near.latency  # one measurement, on other pages
    works = dict(coster.near_works)
    for near_ns, far_ns in {(near.low, far.high), (near.high, far.low)}:
        if near_ns in works or far_ns != far.latency:
            far_at = near_ns if together else far_ns
            yield Assumed(core, far_at, works.get(near_ns, work), near_ns=near_ns)
    for other in coster.other_works:
        yield Assumed(core, far.latency, other)
    for touches, walks in zip(_touch_factors(near, far), walk_ends(near, far), strict=True):
        yield Assumed(core, far.latency, work, touches, walks=walks)


def _other_cores(core: Core) -> tuple[Core, Core]:
    lines = core.parallelism
    return (
        Core(round(core.window / _OTHER_CORE), max(round(lines / _OTHER_CORE), 1)),
        Core(round(core.window * _OTHER_CORE), min(round(lines * _OTHER_CORE), 64)),
    )


def _touch_factors(near: Memory, far: Memory) -> list[tuple[float, float]]:
    """Factors of first touches near and far, with which far memory costs least and most."""
    return [
        (near_ns / near.touch if near.touch else 1.0, far_ns / far.touch if far.touch else 1.0)
        for near_ns, far_ns in touch_ends(near, far)
    ]


def touch_ends(near: Memory, far: Memory) -> list[tuple[float, float]]:
    """First touches near and far, in ns, with which far memory costs least and most. A far memory
    whose first touches are taken as those of near memory has one measurement with it."""
    if (far.touch, far.page_shift) == (near.touch, near.page_shift):
        return [(near.touch_low, far.touch_low), (near.touch_high, far.touch_high)]
    return [(near.touch_high, far.touch_low), (near.touch_low, far.touch_high)]


def walk_ends(near: Memory, far: Memory) -> list[tuple[PageWalk, PageWalk]]:
    """Page walks with which far memory costs least and most; those on pages of the same size are
    one measurement."""
    ends = far.walks if near.page_shift == far.page_shift else far.walks[::-1]
    return list(zip(near.walks, ends, strict=True))[::-1]
