"""From a trace, memories and a budget to advice: what it costs to be far, and what stays near.

The interval of a slowdown is that over the range of the far memory's latency (10 % where none is
told), and over cores with a window and a number of lines in flight of two thirds and one and a half
times those assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearfar.model.results import modelled
from nearfar.place.choosing import Choices, Point, choose
from nearfar.place.costing import Cost, Coster
from nearfar.place.figures import Core, Memory
from nearfar.place.knapsack import knee
from nearfar.place.traced import Traced
from nearfar.records.advice import BudgetPoint, FarAdvice, SiteAdvice, Verdict, WithinPoint

if TYPE_CHECKING:
    from nearfar.records.profile import Profile

#: Slowdowns for which the least near memory is told.
WITHIN = (1.02, 1.05, 1.1, 1.2, 1.5)
_GIB = 1 << 30
_LINE = 64
_UNSURE = 1.5
_DAYS_A_YEAR = 365.25
_NOTE = "core model of misses, over a trace of this program"


@dataclass(frozen=True)
class Asked:
    """What advice is wanted for."""

    traced: Traced
    coster: Coster
    near: Profile
    time_near_s: float
    budget: int | None
    labels: dict[int, str]


@dataclass(frozen=True)
class Found:
    """Advice on one far memory, and the choice behind its plan."""

    advice: FarAdvice
    point: Point
    gains: dict[int, float]


def advise(asked: Asked, far: Memory, profile: Profile) -> Found:
    """The curve, the plan's place on it, and the sites."""
    choices = choose(asked.traced, asked.coster, far, asked.budget)
    bend = _knee(choices)
    point = choices.best_within(asked.budget if asked.budget is not None else bend.near_bytes)
    heap = [site.number for site in asked.traced.heap()]
    far_sites = [n for n in heap if n not in point.near]
    wholes = {
        "all_far": (choices.all_far, list(range(len(asked.traced.sites)))),
        "heap_far": (choices.heap_far, heap),
        "plan": (point.cost, far_sites),
    }
    unsure = _unsure(asked, far, [sites for _, sites in wholes.values()])
    figures: dict[str, tuple[float, float, float]] = {}
    for i, (name, (cost, _)) in enumerate(wholes.items()):
        value = choices.slowdown(cost)
        low = min([value, *(variant[i] for variant in unsure)])
        high = max([value, *(variant[i] for variant in unsure)])
        figures[f"slowdown_{name}"] = (value, low, high)
        figures[f"time_{name}_s"] = tuple(x * asked.time_near_s for x in (value, low, high))  # type: ignore[assignment]
    prices = _prices(asked.near, profile)
    advice = FarAdvice(
        far=far.name,
        near_bytes=point.near_bytes,
        knee_bytes=bend.near_bytes,
        curve=[_on_curve(choices, each, asked, prices) for each in choices.points],
        within=list(_within(choices, asked, prices)),
        far_writes=_far_writes(asked, far_sites),
        lifetime_years=_lifetime(asked, profile, far_sites),
        currency=prices[2] if prices else None,
        sites=_sites(asked, choices, point),
        **modelled(figures, samples=0, note=_NOTE),
    )
    return Found(advice, point, choices.gains)


def _knee(choices: Choices) -> Point:
    points = choices.points
    at = knee([p.budget for p in points], [choices.slowdown(p.cost) for p in points])
    return points[at]


def _unsure(asked: Asked, far: Memory, placements: Sequence[list[int]]) -> list[list[float]]:
    """Slowdowns of the placements with other cores and latencies."""
    core = asked.coster.core
    smaller = Core(round(core.window / _UNSURE), max(round(core.parallelism / _UNSURE), 1))
    larger = Core(round(core.window * _UNSURE), min(round(core.parallelism * _UNSURE), 64))
    variants: list[tuple[Core, float]] = [(smaller, far.latency), (larger, far.latency)]
    variants += [(core, ns) for ns in (far.low, far.high) if ns != far.latency]
    made = []
    for near, *costs in asked.coster.costs_under(far, [[], *placements], variants):
        made.append([cost.time_ns / near.time_ns if near.time_ns else 1.0 for cost in costs])
    return made


def _prices(near: Profile, far: Profile) -> tuple[float, float, str] | None:
    """Prices a GiB and their currency, where both profiles have the same one."""
    key = "price_per_gib"
    if key not in near.figures or key not in far.figures:
        return None
    currency = near.figure(key).unit.partition("/")[0]
    if far.figure(key).unit.partition("/")[0] != currency:
        return None
    return near.scalar(key), far.scalar(key), currency


def _price(near_bytes: int, heap: int, prices: tuple[float, float, str] | None) -> float | None:
    if prices is None:
        return None
    near, far, _ = prices
    return (near_bytes * near + max(heap - near_bytes, 0) * far) / _GIB


def _on_curve(
    choices: Choices, point: Point, asked: Asked, prices: tuple[float, float, str] | None
) -> BudgetPoint:
    return BudgetPoint(
        near_budget_bytes=point.budget,
        near_bytes=point.near_bytes,
        exact=point.exact,
        price=_price(point.near_bytes, asked.traced.heap_peak_bytes, prices),
        **_plainly(slowdown=choices.slowdown(point.cost)),
    )


def _within(
    choices: Choices, asked: Asked, prices: tuple[float, float, str] | None
) -> list[WithinPoint]:
    made = []
    for limit in WITHIN:
        good = [p for p in choices.points if choices.slowdown(p.cost) <= limit]
        if not good:
            continue
        least = min(good, key=lambda p: p.near_bytes)
        made.append(
            WithinPoint(
                within_slowdown=limit,
                near_bytes=least.near_bytes,
                price=_price(least.near_bytes, asked.traced.heap_peak_bytes, prices),
                **_plainly(slowdown=choices.slowdown(least.cost)),
            )
        )
    return made


def _plainly(**figures: float) -> dict[str, Any]:
    """Modelled figures without an interval of their own."""
    return modelled({k: (v, v, v) for k, v in figures.items()}, samples=0, note=_NOTE)


def _far_writes(asked: Asked, far_sites: Sequence[int]) -> int:
    """Lines; sites are numbered as they stand in the trace."""
    return sum(asked.traced.sites[n].writes for n in far_sites)


def _lifetime(asked: Asked, far: Profile, far_sites: Sequence[int]) -> float | None:
    """Bytes that may be written, over those that are in a year of running this without pause."""
    if "endurance_writes" not in far.figures or asked.time_near_s <= 0:
        return None
    far_bytes = float(asked.traced.sizes[list(far_sites)].sum(axis=0).max(initial=0.0))
    written = _far_writes(asked, far_sites) * _LINE
    if not written or not far_bytes:
        return None
    seconds = far_bytes * far.scalar("endurance_writes") / (written / asked.time_near_s)
    return seconds / (_DAYS_A_YEAR * 86400)


def _sites(asked: Asked, choices: Choices, point: Point) -> list[SiteAdvice]:
    """By what having them far costs, most first; without those that hold and touch nothing."""
    far, near = choices.all_far, choices.all_near
    share_of = asked.time_near_s / near.time_ns if near.time_ns else 0.0
    made = [
        SiteAdvice(
            site=site.number,
            kind=site.kind,
            at=asked.labels[site.number],
            chain=[frame.place() for frame in site.frames],
            size_bytes=int(asked.traced.sizes[site.number].max()),
            allocated_bytes=site.allocated_bytes,
            allocations=site.allocations,
            life_share=site.life_share,
            reads=site.reads,
            writes=site.writes,
            dependent_share=_dependent(far, site.number),
            stall_share=far.sites[site.number].stall_ns / far.stall_ns if far.stall_ns else 0.0,
            verdict=_verdict(site.number, asked, point),
            **_plainly(
                far_time_s=max(
                    far.sites[site.number].stall_ns - near.sites[site.number].stall_ns, 0.0
                )
                * share_of
            ),
        )
        for site in asked.traced.sites
        if (site.reads or site.writes or site.allocations) and not site.is_recorder()
    ]
    return sorted(made, key=lambda site: -site.far_time_s)


def _dependent(cost: Cost, number: int) -> float:
    site = cost.sites[number]
    return min(site.dependent / site.reads, 1.0) if site.reads else 0.0


def _verdict(number: int, asked: Asked, point: Point) -> Verdict:
    if not asked.traced.sites[number].is_movable():
        return "fixed"
    return "near" if number in point.near else "far"
