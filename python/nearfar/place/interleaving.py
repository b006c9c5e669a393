"""Advice in fractions: sites near, far or on both memories, under the load of the program itself.

``model.interleave`` finds the fastest placement for the sites' demands (``own_load.SiteDemand``).
The sites that matter most and are large enough are placed in fractions, all others as in the plan
of whole sites. Limits: those of ``own_load``; capacity counts peak sizes, as if all sites were live
at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nearfar.model.interleave import STEPS
from nearfar.model.results import modelled
from nearfar.place.advising import WITHIN, AdviceInputs, FarResult, as_uncertain, plainly
from nearfar.place.choosing import Point
from nearfar.place.fractions import NearParts, Nodes
from nearfar.place.own_load import OwnLoad, RunTimes
from nearfar.records.advice import (
    BudgetPoint,
    FarAdvice,
    FractionAdvice,
    SiteAdvice,
    WithinPoint,
)

if TYPE_CHECKING:
    from nearfar._native import Placement
    from nearfar.place.sites import Site
    from nearfar.records.depth import LoadedTier

#: A smaller site stays whole: each of its parts would be less than the pages of a stripe.
MIN_BYTES = 4 << 20
#: Sites that are placed in fractions.
_MAX_SITES = 12
#: Placements that the exact search tries.
_MAX_NODES = 300_000
#: Placements that it tries for a point of the curve.
_MAX_NODES_OF_CURVE = 20_000
#: Bisection steps of ``_needed``.
_BISECTIONS = 5
#: A plan in fractions has to save this part of the CPU time of the plan of whole sites.
MIN_GAIN = 0.01
_NOTE = "core model of misses, at the loaded latency of both memories"
#: Relative error of a gain from more bandwidth; its range ends at a ratio of 1 (no gain).
_GAIN_ERROR = 0.25
_NS = 1e9


@dataclass(frozen=True)
class FractionsFound:
    """Near eighths by site number, and wall times in s of this and of simpler placements.

    ``whole``: the plan of whole sites.
    """

    steps: dict[int, int]
    near_bytes: int
    best: Placement
    whole: Placement

    @property
    def time_s(self) -> float:
        """Wall time of the placement in fractions."""
        return self.best["time_ns"] / _NS

    @property
    def whole_s(self) -> float:
        """Wall time of the plan of whole sites, under the same load."""
        return self.whole["time_ns"] / _NS

    def is_better(self, times: RunTimes) -> bool:
        """Whether it saves enough of the CPU time of the plan of whole sites. Idle time does not
        count: a service that mostly waits has no less to gain in each request."""
        slowdown, whole = times.slowdown_at(self.time_s), times.slowdown_at(self.whole_s)
        return slowdown < (1 - MIN_GAIN) * whole


def find_fractions(
    inputs: AdviceInputs, found: FarResult, load: OwnLoad, at: Point | None = None
) -> FractionsFound | None:
    """The fastest placement in fractions within the near memory of the plan, or within the budget
    of ``at``, a point of the curve; None if no site can be placed in fractions."""
    free = _free(inputs, found)
    if not free or inputs.wall_s <= 0:
        return None
    point = at or found.point
    kept = point.near
    movable = {site.number for site in inputs.data.movable()}
    others = [each for each in load.sites if each.number not in free]
    fixed = load.demand(others, [n for n in movable if n not in kept])
    rows = [load.sites[number].native() for number in free]
    plan = [STEPS if number in kept else 0 for number in free]
    budget = inputs.budget if at is None else at.budget
    times = load.model(_room(inputs, point, budget, free))
    whole = times.time(rows, plan, STEPS, fixed)
    if whole is None:  # the plan fits its own room
        return None
    best = times.solve(rows, STEPS, _MAX_NODES if at is None else _MAX_NODES_OF_CURVE, fixed)
    steps = {**dict.fromkeys(kept, STEPS), **dict(zip(free, best["near_steps"], strict=True))}
    return FractionsFound(
        steps={number: step for number, step in steps.items() if step},
        near_bytes=_near_bytes(inputs, steps),
        best=best,
        whole=whole,
    )


def _free(inputs: AdviceInputs, found: FarResult) -> list[int]:
    """The sites that are placed in fractions: large ones, with the most to gain first."""
    near, far = found.choices.all_near, found.choices.all_far
    lines = sum(site.reads + site.writes for site in inputs.data.sites) or 1
    stalls = max(far.stall_ns - near.stall_ns, 1.0)

    def weight(site: Site) -> float:
        added = far.sites[site.number].added_ns(near.sites[site.number])
        return abs(added) / stalls + (site.reads + site.writes) / lines

    large = [s for s in inputs.data.movable() if inputs.data.held_bytes(s.number) >= MIN_BYTES]
    return [site.number for site in sorted(large, key=weight, reverse=True)[:_MAX_SITES]]


def _room(inputs: AdviceInputs, point: Point, budget: int | None, free: Sequence[int]) -> float:
    """Near memory for the sites in fractions: what the plan has for them, and what it leaves."""
    used = sum(inputs.data.held_bytes(n) for n in free if n in point.near)
    left = 0 if budget is None else max(budget - point.near_bytes, 0)
    return float(used + left)


def _near_bytes(inputs: AdviceInputs, steps: Mapping[int, int]) -> int:
    """Most bytes that are near at once."""
    held = [inputs.data.sizes[number] * (step / STEPS) for number, step in steps.items() if step]
    return int(sum(held).max()) if held else 0


def with_fractions(
    inputs: AdviceInputs,
    found: FarResult,
    fractions: FractionsFound,
    nodes: Nodes,
    loads: tuple[LoadedTier, LoadedTier],
    load: OwnLoad,
) -> FarResult:
    """The advice with what was found, and with its plan if that is better."""
    applied = fractions.is_better(inputs.times)
    slowdown = inputs.times.slowdown_at(fractions.time_s)
    record = FractionAdvice(
        applied=applied,
        exact=fractions.best["exact"],
        near_bytes=fractions.near_bytes,
        near_load=loads[0],
        far_load=loads[1],
        **modelled(
            {
                "slowdown": _interval(found.advice, slowdown),
                "whole_sites_slowdown": _interval(
                    found.advice, inputs.times.slowdown_at(fractions.whole_s)
                ),
                "all_far_slowdown": _interval(found.advice, found.advice.slowdown_all_far),
            },
            samples=0,
            note=_NOTE,
        ),
    )
    advice = found.advice.model_copy(update={"fractions": record})
    advice = _on_curve(inputs, replace(found, advice=advice), load)
    if not applied:
        return replace(found, advice=advice)
    placing = NearParts(fractions.steps, nodes)
    return replace(found, advice=_planned(inputs, advice, record, placing), placing=placing)


def _on_curve(inputs: AdviceInputs, found: FarResult, load: OwnLoad) -> FarAdvice:
    """The advice with plans in fractions on its curve, where they are better, and with the near
    memory that small losses then need."""
    points = found.choices.points
    curve = [
        _better_point(inputs, found, load, point, known)
        for point, known in zip(points, found.advice.curve, strict=True)
    ]
    within = [_needed(inputs, found, load, curve, limit) for limit in WITHIN]
    return found.advice.model_copy(
        update={"curve": curve, "within": [each for each in within if each is not None]}
    )


def _better_point(
    inputs: AdviceInputs, found: FarResult, load: OwnLoad, point: Point, known: BudgetPoint
) -> BudgetPoint:
    """A point of the curve, in fractions if that is better. All far and the knee stay as they are:
    the plan without a budget is that of the knee."""
    if point.budget == 0 or point.near_bytes == found.advice.knee_bytes:
        return known
    fractions = find_fractions(inputs, found, load, point)
    if fractions is None or not fractions.is_better(inputs.times):
        return known
    triple = _interval(found.advice, inputs.times.slowdown_at(fractions.time_s))
    price = _price(inputs, found.advice, fractions.near_bytes)
    exact = fractions.best["exact"]
    return known.model_copy(update=_interleaved(fractions.near_bytes, triple, exact, price))


def _interleaved(
    near_bytes: int, slowdown: tuple[float, float, float], exact: bool, price: float | None
) -> dict[str, Any]:
    """Fields of a point of the curve that come from a plan in fractions."""
    return {
        "near_bytes": near_bytes,
        "slowdown": slowdown[0],
        "intervals": {"slowdown": slowdown[1:]},
        "exact": exact,
        "interleaved": True,
        "price": price,
    }


def _needed(
    inputs: AdviceInputs,
    found: FarResult,
    load: OwnLoad,
    curve: Sequence[BudgetPoint],
    limit: float,
) -> WithinPoint | None:
    """The least near memory for a loss: a point of the curve, or a budget below it and above the
    point before, found by bisection."""
    good = [point for point in curve if point.slowdown <= limit]
    if not good:
        return None
    least = min(good, key=lambda point: point.near_bytes)
    need, slowdown = least.near_bytes, least.slowdown
    low = max((p.near_bytes for p in curve if p.near_bytes < need), default=need)
    high = need
    for _ in range(_BISECTIONS):
        if high - low < MIN_BYTES:
            break
        budget = (low + high) // 2
        at = replace(found.choices.best_within(budget), budget=budget)
        fractions = find_fractions(inputs, found, load, at)
        fits = fractions is not None and inputs.times.slowdown_at(fractions.time_s) <= limit
        if fractions is not None and fits and fractions.near_bytes < need:
            need, slowdown = fractions.near_bytes, inputs.times.slowdown_at(fractions.time_s)
        low, high = (low, budget) if fits else (budget, high)
    return WithinPoint(
        near_bytes=need,
        price=_price(inputs, found.advice, need),
        **plainly(slowdown=slowdown, within_slowdown=limit),
    )


def _interval(advice: FarAdvice, slowdown: float) -> tuple[float, float, float]:
    if slowdown < 1:
        return slowdown, max(1 + (slowdown - 1) * (1 + _GAIN_ERROR), 0.0), 1.0
    value = advice.slowdown_movable_far
    low, high = advice.interval("slowdown_movable_far") or (value, value)
    return as_uncertain(slowdown, (value, low, high))


def _planned(
    inputs: AdviceInputs, advice: FarAdvice, record: FractionAdvice, placing: NearParts
) -> FarAdvice:
    """The advice whose plan is in fractions. Energy and wear are known of whole sites only."""
    low, high = record.intervals["slowdown"]
    triple = (record.slowdown, low, high)
    times = tuple(map(inputs.times.wall_at, triple))
    price = _price(inputs, advice, record.near_bytes)
    return advice.model_copy(
        update={
            "slowdown_plan": record.slowdown,
            "time_plan_s": times[0],
            "intervals": {
                **advice.intervals,
                "slowdown_plan": triple[1:],
                "time_plan_s": times[1:],
            },
            "near_bytes": record.near_bytes,
            "curve": _with_plan(advice.curve, record, inputs.budget, price),
            "far_writes": sum(
                round(site.writes * (1 - placing.steps.get(site.number, 0) / STEPS))
                for site in inputs.data.movable()
            ),
            "energy_plan_J": None,
            "lifetime_years": None,
            "price_plan": price,
            "sites": [_with_share(site, placing) for site in advice.sites],
        }
    )


def _with_plan(
    curve: Sequence[BudgetPoint], record: FractionAdvice, budget: int | None, price: float | None
) -> list[BudgetPoint]:
    """The curve with the plan, in place of the point of its budget; without points that have more
    room and are slower."""
    slowdown = (record.slowdown, *record.intervals["slowdown"])
    update = _interleaved(record.near_bytes, slowdown, record.exact, price)
    most = curve[-1].near_budget_bytes
    at = min(budget, most) if budget is not None else record.near_bytes
    same = next((i for i, p in enumerate(curve) if p.near_budget_bytes == at), None)
    place = len(curve) if same is None else same
    plan = curve[min(place, len(curve) - 1)].model_copy(update={"near_budget_bytes": at, **update})
    others = [
        point
        for i, point in enumerate(curve)
        if i != same and (point.near_budget_bytes <= at or point.slowdown <= record.slowdown)
    ]
    return sorted([*others, plan], key=lambda point: point.near_budget_bytes)


def _price(inputs: AdviceInputs, advice: FarAdvice, near_bytes: int) -> float | None:
    """The price of the plan, between those of all data near and far."""
    if advice.price_all_near is None or advice.price_all_far is None:
        return None
    part = near_bytes / max(inputs.data.movable_peak_bytes, 1)
    return advice.price_all_far + part * (advice.price_all_near - advice.price_all_far)


def _with_share(site: SiteAdvice, placing: NearParts) -> SiteAdvice:
    if site.verdict == "fixed":
        return site
    steps = placing.steps.get(site.site, 0)
    mixed = placing.is_mixed(site.site)
    verdict = "interleaved" if mixed else placing.tier(site.site)
    return site.model_copy(
        update={"verdict": verdict, "near_share": steps / STEPS if mixed else None}
    )
