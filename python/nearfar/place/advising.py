"""From observed data, memories and a budget to advice: slowdowns on far memory, near sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nearfar.model.interleave import loaded_tier
from nearfar.model.results import modelled
from nearfar.place import expenses
from nearfar.place.choosing import Choices, Point, choose
from nearfar.place.costing import Cost, Coster, CostModel, SiteCost
from nearfar.place.fractions import NearParts
from nearfar.place.knapsack import knee
from nearfar.place.labels import Labels
from nearfar.place.memory_costs import Memory
from nearfar.place.own_load import LoadedCoster, OwnLoad, RunTimes, Variants
from nearfar.place.policies import evaluate_policies
from nearfar.place.program_data import ProgramData
from nearfar.place.sites import Site
from nearfar.place.traced import ProgramTrace
from nearfar.place.uncertainty import LossFactors
from nearfar.records.advice import BudgetPoint, FarAdvice, PolicyAdvice, SiteAdvice, WithinPoint
from nearfar.records.choices import Placing

if TYPE_CHECKING:
    from nearfar.records.profile import Profile

#: Slowdowns for which the minimum near memory is reported.
WITHIN = (1.02, 1.05, 1.1, 1.2, 1.5)
_NOTE = "core model of misses, over a trace or samples of this program"


@dataclass(frozen=True)
class AdviceInputs:
    """Inputs of the advice. ``variants``: slowdowns of placements on a far memory under each
    variant of the model's inputs."""

    data: ProgramData
    coster: CostModel
    variants: Variants
    near: Profile
    wall_s: float
    cpu_s: float
    budget: int | None
    labels: Labels
    loss: LossFactors = field(default_factory=LossFactors)

    @property
    def times(self) -> RunTimes:
        """Wall and CPU time of the observed run."""
        return RunTimes(self.wall_s, self.cpu_s)


@dataclass(frozen=True)
class FarResult:
    """Advice on one far memory, and the choices behind its plan."""

    advice: FarAdvice
    point: Point
    choices: Choices
    placing: NearParts


def advise(
    inputs: AdviceInputs, far: Memory, profile: Profile, load: OwnLoad | None = None
) -> FarResult:
    """The curve, the plan's point on it, the sites, other costs, and other policies.

    ``load``: if given, and its traffic is high, times include the load of the program itself.
    """
    coster = inputs.coster
    load = load if load is not None and load.matters() else None
    if load is not None:
        coster = LoadedCoster(coster, load)
        inputs = replace(inputs, variants=load.variants(inputs.variants))
    choices = choose(inputs.data, coster, far, inputs.budget)
    bend = _knee(choices)
    point = bend if inputs.budget is None else choices.best_within(inputs.budget)
    wholes = _whole_placements(inputs, choices, point)
    prices = expenses.prices_of(inputs.near, profile)
    known = prices if isinstance(prices, expenses.Prices) else None
    placed = expenses.Placed(inputs.data, inputs.coster, inputs.near, profile, inputs.wall_s)
    bounds = _bounds(inputs, far, choices, wholes)
    advice = FarAdvice(
        far=far.name,
        near_bytes=point.near_bytes,
        knee_bytes=bend.near_bytes,
        curve=[_on_curve(choices, each, inputs, known, bounds) for each in choices.points],
        within=list(_within(choices, inputs, known)),
        policies=_policies(inputs, far, choices, point, load),
        all_far_load=loaded_tier(load.far, load.all_far()) if load is not None else None,
        sites=_sites(inputs, choices, point),
        **expenses.other_expenses(placed, prices, wholes["plan"][1], point.near_bytes),
        **modelled(bounds, samples=0, note=_NOTE),
    )
    advice.provenance |= expenses.provenance_of(advice)
    return FarResult(advice, point, choices, NearParts.whole(point.near))


def _whole_placements(
    inputs: AdviceInputs, choices: Choices, point: Point
) -> dict[str, tuple[Cost, list[int]]]:
    """Costs and far sites of the placements in which no site is on both memories."""
    movable = [site.number for site in inputs.data.movable()]
    return {
        "all_far": (choices.all_far, list(range(len(inputs.data.sites)))),
        "movable_far": (choices.movable_far, movable),
        "plan": (point.cost, [n for n in movable if n not in point.near]),
    }


def _bounds(
    inputs: AdviceInputs,
    far: Memory,
    choices: Choices,
    wholes: Mapping[str, tuple[Cost, list[int]]],
) -> dict[str, tuple[float, float, float]]:
    """Slowdowns and times of the placements, with their intervals."""
    found = inputs.variants(far, [sites for _, sites in wholes.values()])
    figures = {}
    for i, (name, (cost, _)) in enumerate(wholes.items()):
        value = choices.slowdown(cost)
        triple = (value, *inputs.loss.interval([value, *(variant[i] for variant in found)]))
        figures[f"slowdown_{name}"] = triple
        figures[f"time_{name}_s"] = tuple(map(inputs.times.wall_at, triple))  # type: ignore[assignment]
    return figures


def _policies(
    inputs: AdviceInputs, far: Memory, choices: Choices, point: Point, load: OwnLoad | None
) -> list[PolicyAdvice]:
    if not isinstance(inputs.coster, Coster) or not isinstance(inputs.data, ProgramTrace):
        return []  # they are followed access by access
    budget = point.near_bytes if inputs.budget is None else inputs.budget
    near_bytes = min(budget, inputs.data.movable_peak_bytes) + inputs.data.fixed_bytes()
    near_ns = choices.all_near.time_ns
    found = evaluate_policies(inputs.data, inputs.coster, far, near_bytes, inputs.wall_s)
    made = []
    for each in found:
        slowdown = each.time_ns / near_ns if near_ns else 1.0
        if load is not None:
            slowdown = load.slowdown_of_share(slowdown, each.near_share)
        made.append(
            PolicyAdvice(
                policy=each.policy,
                near_bytes=each.near_bytes,
                moved_pages=each.moved_pages,
                far_writes=each.far_writes,
                **plainly(
                    slowdown=slowdown,
                    time_s=inputs.times.wall_at(slowdown),
                    near_share=each.near_share,
                ),
            )
        )
    return made


def _knee(choices: Choices) -> Point:
    points = choices.points
    at = knee([p.budget for p in points], [choices.slowdown(p.cost) for p in points])
    return points[at]


def _on_curve(
    choices: Choices,
    point: Point,
    inputs: AdviceInputs,
    prices: expenses.Prices | None,
    bounds: Mapping[str, tuple[float, float, float]],
) -> BudgetPoint:
    """A point; its loss is as uncertain as that of all movable memory far."""
    slowdown = choices.slowdown(point.cost)
    triple = as_uncertain(slowdown, bounds["slowdown_movable_far"])
    return BudgetPoint(
        near_budget_bytes=point.budget,
        near_bytes=point.near_bytes,
        exact=point.exact,
        price=prices.of(point.near_bytes, inputs.data.movable_peak_bytes) if prices else None,
        **modelled({"slowdown": triple}, samples=0, note=_NOTE),
    )


def as_uncertain(slowdown: float, known: tuple[float, float, float]) -> tuple[float, float, float]:
    """A slowdown and its interval, if its loss is relatively as uncertain as a known one."""
    whole, *ends = known
    low, high = (
        1 + (slowdown - 1) * (end - 1) / (whole - 1) if whole > 1 else slowdown for end in ends
    )
    return slowdown, min(low, high, slowdown), max(low, high, slowdown)


def _within(
    choices: Choices, inputs: AdviceInputs, prices: expenses.Prices | None
) -> list[WithinPoint]:
    made = []
    for limit in WITHIN:
        good = [p for p in choices.points if choices.slowdown(p.cost) <= limit]
        if not good:
            continue
        least = min(good, key=lambda p: p.near_bytes)
        made.append(
            WithinPoint(
                near_bytes=least.near_bytes,
                price=prices.of(least.near_bytes, inputs.data.movable_peak_bytes)
                if prices
                else None,
                **plainly(slowdown=choices.slowdown(least.cost), within_slowdown=limit),
            )
        )
    return made


def plainly(**figures: float) -> dict[str, Any]:
    """Modeled figures without an interval of their own."""
    fields = modelled({k: (v, v, v) for k, v in figures.items()}, samples=0, note=_NOTE)
    return {**fields, "intervals": {}}


def _sites(inputs: AdviceInputs, choices: Choices, point: Point) -> list[SiteAdvice]:
    """Sites by their cost on far memory, highest first; without unused and empty sites."""
    far, near = choices.all_far, choices.all_near
    scale = inputs.cpu_s / near.time_ns if near.time_ns else 0.0
    made = [
        SiteAdvice(
            site=site.number,
            kind=site.kind,
            at=inputs.labels.at[site.number],
            part_bytes=list(site.part or ()),
            chain=[frame.place() for frame in site.frames],
            functions=inputs.labels.functions.get(site.number, []),
            size_bytes=inputs.data.held_bytes(site.number),
            allocated_bytes=site.allocated_bytes,
            allocations=site.allocations,
            reads=site.reads,
            writes=site.writes,
            verdict=_verdict(site.number, inputs, point),
            **plainly(
                far_time_s=_added_s(
                    site, far.sites[site.number], near.sites[site.number], scale, choices.far_ns
                ),
                first_touch_s=round(far.sites[site.number].added_touch_ns * scale, 12),
                life_share=site.life_share,
                dependent_share=_dependent(far, site.number),
                stall_share=_share(far.sites[site.number].stall_ns, far.stall_ns),
            ),
        )
        for site in inputs.data.sites
        if (site.reads or site.writes or site.allocations) and not site.is_recorder()
    ]
    return sorted(made, key=lambda site: -(site.far_time_s + site.first_touch_s))


def _added_s(site: Site, far: SiteCost, near: SiteCost, scale: float, far_ns: float) -> float:
    """Additional stall time of a site's accesses, rounded to the picosecond, at most one far access
    each; smaller differences are rounding of sums."""
    added_s = max(far.stall_ns - near.stall_ns, 0.0) * scale
    return round(min(added_s, (site.reads + site.writes) * far_ns * 1e-9), 12)


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0


def _dependent(cost: Cost, number: int) -> float:
    site = cost.sites[number]
    return min(site.dependent / site.reads, 1.0) if site.reads else 0.0


def _verdict(number: int, inputs: AdviceInputs, point: Point) -> Placing:
    if not inputs.data.sites[number].is_movable():
        return "fixed"
    return "near" if number in point.near else "far"
