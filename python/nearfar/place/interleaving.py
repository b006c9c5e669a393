"""Advice in fractions: sites near, far or on both memories, under the load of the program itself.

The stalls of each site on near and on far memory are those of the core model, as wall time, and its
traffic is what was counted or estimated. ``model.interleave`` finds the fastest placement at the
loaded latency of both memories. The run was observed under its own load, so that its stalls are
divided by what that load, and the background, add:

    near_idle = near · L_near(background) / L_near(run + background)  (and far_idle likewise, since
    the number of waits follows from the near latency), each over the background's own factor

With all data near the model then takes the observed time. The sites that matter most and are large
enough are placed in fractions, all others as the plan of whole sites has them. Limits: capacity
counts the peaks of sites, as if all lived at once; as in ``model.interleave``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nearfar._native import NativeError, PlacementTime
from nearfar.errors import BadInputError
from nearfar.model.interleave import STEPS, Load, LoadedMemory, SiteTuple, state_of
from nearfar.model.results import modelled
from nearfar.place.advising import AdviceInputs, FarResult, as_uncertain
from nearfar.place.fractions import NearParts, Nodes
from nearfar.profiles.pacing import LINE_BYTES
from nearfar.records.advice import FarAdvice, FractionAdvice, SiteAdvice

if TYPE_CHECKING:
    from nearfar._native import Placement
    from nearfar.place.sites import Site
    from nearfar.records.depth import LoadedTier

#: A smaller site stays whole: each of its parts would be less than the pages of a stripe.
MIN_BYTES = 4 << 20
#: Sites in fractions, and placements that the exact search looks at.
_MAX_SITES, _MAX_NODES = 12, 300_000
#: A plan in fractions has to save this part of the time of the plan of whole sites.
MIN_GAIN = 0.01
_NOTE = "core model of misses, at the loaded latency of both memories"
#: near_stall_ns, far_stall_ns, near_reads, near_writes, far_reads, far_writes
DemandTuple = tuple[float, float, float, float, float, float]
#: An estimate of traffic is wrong if near memory can carry less than this part of it.
CREDIBLE = 0.8
#: Relative error of a gain that more bandwidth makes, whose upper end is a ratio of 1.
_GAIN_ERROR = 0.25
#: Bisections of the traffic that near memory can have carried.
_HALVINGS = 40
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
    all_far_s: float

    @property
    def time_s(self) -> float:
        """Wall time of the placement in fractions."""
        return self.best["time_ns"] / _NS

    @property
    def whole_s(self) -> float:
        """Wall time of the plan of whole sites, under the same load."""
        return self.whole["time_ns"] / _NS

    def is_better(self) -> bool:
        """Whether it is worth more than the plan of whole sites."""
        return self.time_s < (1 - MIN_GAIN) * self.whole_s


@dataclass(frozen=True)
class _Load:
    """A site as the solver sees it: wall time of its stalls on idle memories, traffic in bytes."""

    number: int
    near_ns: float
    far_ns: float
    reads: float
    writes: float
    size: float

    def native(self) -> SiteTuple:
        return self.near_ns, self.far_ns, self.reads, self.writes, self.size


def find_fractions(
    asked: AdviceInputs, found: FarResult, near: LoadedMemory, far: LoadedMemory
) -> FractionsFound | None:
    """The fastest placement in fractions within the near memory of the plan; None if no site can be
    placed in fractions. Raises BadInputError if the traffic is not known well enough, NativeError
    for a background that leaves no bandwidth."""
    free = _free(asked, found)
    if not free or asked.wall_s <= 0:
        return None
    observed = _observed(asked, found)
    share = _carried(asked.wall_s, observed, near)
    if share < CREDIBLE:
        raise BadInputError(
            f"the estimated traffic of the run is {1 / max(share, 1e-9):.3g} times the bandwidth "
            f"of {near.name}",
            "name the near memory that the program runs on, with its bandwidth under load",
        )
    loads = _idle(asked.wall_s, observed, share, near, far)
    base_ns = asked.wall_s * _NS - sum(each.near_ns for each in observed)
    kept = found.point.near
    movable = {site.number for site in asked.data.movable()}
    others = [each for each in loads if each.number not in free]
    fixed = _demand(others, [n for n in movable if n not in kept])
    rows = [loads[number].native() for number in free]
    plan = [STEPS if number in kept else 0 for number in free]
    room = _room(asked, found, free)
    times = PlacementTime(
        max(base_ns, 1e-6 * asked.wall_s * _NS),
        replace(near, capacity_bytes=room).native(),
        far.native(),
    )
    whole = times.time(rows, plan, STEPS, fixed)
    all_far = times.time([], [], STEPS, _demand(loads, range(len(loads))))
    if whole is None or all_far is None:  # a background without bandwidth is refused before
        return None
    best = times.solve(rows, STEPS, _MAX_NODES, fixed)
    steps = {**dict.fromkeys(kept, STEPS), **dict(zip(free, best["near_steps"], strict=True))}
    return FractionsFound(
        steps={number: step for number, step in steps.items() if step},
        near_bytes=_near_bytes(asked, steps),
        best=best,
        whole=whole,
        all_far_s=all_far["time_ns"] / _NS,
    )


def _free(asked: AdviceInputs, found: FarResult) -> list[int]:
    """The sites that are placed in fractions: large ones, with the most to gain first."""
    near, far = found.choices.all_near, found.choices.all_far
    lines = sum(site.reads + site.writes for site in asked.data.sites) or 1
    stalls = max(far.stall_ns - near.stall_ns, 1.0)

    def weight(site: Site) -> float:
        added = far.sites[site.number].added_ns(near.sites[site.number])
        return abs(added) / stalls + (site.reads + site.writes) / lines

    large = [s for s in asked.data.movable() if asked.data.held_bytes(s.number) >= MIN_BYTES]
    return [site.number for site in sorted(large, key=weight, reverse=True)[:_MAX_SITES]]


def _observed(asked: AdviceInputs, found: FarResult) -> list[_Load]:
    """All sites with their stalls under the load of the run. CPU times of concurrent threads become
    wall time in the proportion of the run's."""
    near, far = found.choices.all_near, found.choices.all_far
    scale = min(asked.cpu_s, asked.wall_s) * _NS / near.time_ns if near.time_ns else 0.0
    return [
        _Load(
            number=site.number,
            near_ns=near.sites[site.number].stall_ns * scale,
            far_ns=max(far.sites[site.number].stall_ns + far.sites[site.number].added_touch_ns, 0.0)
            * scale,
            reads=float(site.reads * LINE_BYTES),
            writes=float(site.writes * LINE_BYTES),
            size=float(asked.data.held_bytes(site.number)),
        )
        for site in asked.data.sites
    ]


def _with_traffic(wall_s: float, loads: Sequence[_Load], part: float, near: LoadedMemory) -> Load:
    """The background of near memory and this part of the run's traffic."""
    return Load(
        near.background.reads + part * sum(each.reads for each in loads) / wall_s,
        near.background.writes + part * sum(each.writes for each in loads) / wall_s,
    )


def _carried(wall_s: float, loads: Sequence[_Load], near: LoadedMemory) -> float:
    """The largest part of the run's traffic that is below the peak of near memory."""

    def is_possible(part: float) -> bool:
        try:
            state_of(replace(near, background=_with_traffic(wall_s, loads, part, near)))
        except NativeError:
            return False
        return True

    if is_possible(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
    return low


def _idle(
    wall_s: float, loads: Sequence[_Load], part: float, near: LoadedMemory, far: LoadedMemory
) -> list[_Load]:
    """The sites on idle memories, with the traffic that near memory can have carried."""
    running = replace(near, background=_with_traffic(wall_s, loads, part, near))
    near_ns = state_of(running)["latency_ns"]
    far_factor = (
        state_of(far)["latency_ns"] / state_of(replace(far, background=Load()))["latency_ns"]
    )
    near_part = state_of(replace(near, background=Load()))["latency_ns"] / near_ns
    far_part = state_of(near)["latency_ns"] / near_ns / far_factor
    return [
        replace(
            each,
            near_ns=each.near_ns * near_part,
            far_ns=each.far_ns * far_part,
            reads=each.reads * part,
            writes=each.writes * part,
        )
        for each in loads
    ]


def _demand(loads: Iterable[_Load], far: Collection[int]) -> DemandTuple:
    """The demand of whole sites, of which those in ``far`` are far."""
    sums = [0.0] * 6
    for each in loads:
        is_far = each.number in far
        sums[is_far] += each.far_ns if is_far else each.near_ns
        sums[2 + 2 * is_far] += each.reads
        sums[3 + 2 * is_far] += each.writes
    return sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]


def _room(asked: AdviceInputs, found: FarResult, free: Sequence[int]) -> float:
    """Near memory for the sites in fractions: what the plan has for them, and what it leaves."""
    budget = found.point.near_bytes if asked.budget is None else asked.budget
    used = sum(asked.data.held_bytes(n) for n in free if n in found.point.near)
    return float(used + max(budget - found.point.near_bytes, 0))


def _near_bytes(asked: AdviceInputs, steps: Mapping[int, int]) -> int:
    """Most bytes that are near at once."""
    held = [asked.data.sizes[number] * (step / STEPS) for number, step in steps.items() if step]
    return int(sum(held).max()) if held else 0


def with_fractions(
    asked: AdviceInputs,
    found: FarResult,
    fractions: FractionsFound,
    nodes: Nodes,
    loads: tuple[LoadedTier, LoadedTier],
) -> FarResult:
    """The advice with what was found, and with its plan if that is better."""
    applied = fractions.is_better()
    slowdown = _slowdown(asked, fractions.time_s)
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
                    found.advice, _slowdown(asked, fractions.whole_s)
                ),
                "all_far_slowdown": _interval(found.advice, _slowdown(asked, fractions.all_far_s)),
            },
            samples=0,
            note=_NOTE,
        ),
    )
    advice = found.advice.model_copy(update={"fractions": record})
    if not applied:
        return replace(found, advice=advice)
    placing = NearParts(fractions.steps, nodes)
    return replace(found, advice=_planned(asked, advice, record, placing), placing=placing)


def _slowdown(asked: AdviceInputs, time_s: float) -> float:
    """The slowdown of CPU time at a wall time: the inverse of ``AdviceInputs.wall_at``."""
    return 1 + (time_s - asked.wall_s) / min(asked.cpu_s, asked.wall_s)


def _interval(advice: FarAdvice, slowdown: float) -> tuple[float, float, float]:
    if slowdown < 1:
        return slowdown, max(1 + (slowdown - 1) * (1 + _GAIN_ERROR), 0.0), 1.0
    value = advice.slowdown_movable_far
    low, high = advice.interval("slowdown_movable_far") or (value, value)
    return as_uncertain(slowdown, (value, low, high))


def _planned(
    asked: AdviceInputs, advice: FarAdvice, record: FractionAdvice, placing: NearParts
) -> FarAdvice:
    """The advice whose plan is in fractions. Energy and wear are known of whole sites only."""
    low, high = record.intervals["slowdown"]
    triple = (record.slowdown, low, high)
    times = tuple(map(asked.wall_at, triple))
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
            "far_writes": sum(
                round(site.writes * (1 - placing.steps.get(site.number, 0) / STEPS))
                for site in asked.data.movable()
            ),
            "energy_plan_J": None,
            "lifetime_years": None,
            "price_plan": _price(asked, advice, record.near_bytes),
            "sites": [_with_share(site, placing) for site in advice.sites],
        }
    )


def _price(asked: AdviceInputs, advice: FarAdvice, near_bytes: int) -> float | None:
    """The price of the plan, between those of all data near and far."""
    if advice.price_all_near is None or advice.price_all_far is None:
        return None
    part = near_bytes / max(asked.data.movable_peak_bytes, 1)
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
