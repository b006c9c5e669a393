"""Advice with sites on both memories, from sites whose costs add up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

import factories
from nearfar.errors import BadInputError
from nearfar.model.interleave import Load, LoadedMemory
from nearfar.place.advising import AdviceInputs, FarResult, advise
from nearfar.place.costing import Cost, SiteCost
from nearfar.place.interleaving import FractionsFound, find_fractions, with_fractions
from nearfar.place.labels import Labels
from nearfar.place.memory_costs import Memory, PageWalk
from nearfar.place.own_load import OwnLoad
from nearfar.place.program_data import ProgramData, Touched
from nearfar.place.sites import Frame, Site
from nearfar.profiles import load_profile
from nearfar.profiles.loaded_curves import Loaded, LoadedCurves
from nearfar.records.depth import LoadedTier
from nearfar.report.console import print_result
from nearfar.report.html.sections import advice as page
from nearfar.report.terminal import advising as terminal

MIB = 1 << 20
GB = 1e9
NEAR = Memory("n", 100, 100, 100, 1, 1, PageWalk(), 12)
FAR = Memory("f", 200, 200, 200, 3, 3, PageWalk(), 12)
RUN_S = 10.0


@dataclass(frozen=True)
class Stalls:
    """A site: bytes, stalls near and far in s, and bytes that it reads from memory."""

    size: int
    near_s: float
    far_s: float
    traffic: float = 0.0


class Additive:
    """Costs of placements: the sum of the stalls, and the rest of the run."""

    near = NEAR

    def __init__(self, sites: Sequence[Stalls]) -> None:
        self.sites = sites

    def costs(self, far: Memory, placements: Sequence[Iterable[int]]) -> list[Cost]:
        return [self._cost(set(placement)) for placement in placements]

    def _cost(self, far: set[int]) -> Cost:
        stalls = [s.far_s if n in far else s.near_s for n, s in enumerate(self.sites)]
        added = sum(stalls) - sum(s.near_s for s in self.sites)
        sites = tuple(SiteCost(0, 0, 0, 0, 0, stall * 1e9) for stall in stalls)
        return Cost((RUN_S + added) * 1e9, sum(stalls) * 1e9, 0, sites)


def asked_for(*sites: Stalls, budget: int | None, sizes: object = None) -> AdviceInputs:
    coster = Additive(sites)
    made = tuple(
        Site(
            number,
            "heap",
            (Frame("/bin/p", "ab" * 20, 16 + number),),
            1,
            each.size,
            each.size,
            round(each.traffic / 64),
            0,
            1.0,
        )
        for number, each in enumerate(sites)
    )
    held = np.array([[float(each.size)] * 2 for each in sites]) if sizes is None else sizes
    nothing = tuple(0 for _ in sites)

    def variants(far: Memory, placements: Sequence[list[int]]) -> list[list[float]]:
        costs = coster.costs(far, placements)
        return [[factor * cost.time_ns / RUN_S / 1e9 for cost in costs] for factor in (0.9, 1.1)]

    return AdviceInputs(
        ProgramData(made, held, Touched(nothing, nothing, 0)),  # type: ignore[arg-type]
        coster,
        variants,
        load_profile("ddr5"),
        RUN_S,
        RUN_S,
        budget,
        Labels({n: f"s{n}" for n in range(len(sites))}, {}),
    )


def memory(name: str, idle_ns: float, peak: float) -> LoadedMemory:
    """Latency is three times as long at the peak as without a load."""
    curve = tuple(Loaded(peak * u, idle_ns * (1 + 2 * u**3)) for u in (0, 0.25, 0.5, 0.75, 0.9, 1))
    return LoadedMemory(name, LoadedCurves({1.0: curve}, ()))


FAST, SLOW = memory("n", 100, 40 * GB), memory("f", 200, 15 * GB)


def under_load(asked: AdviceInputs, near: LoadedMemory = FAST, far: LoadedMemory = SLOW) -> OwnLoad:
    ends = asked.coster.costs(FAR, [[], range(len(asked.data.sites))])
    return OwnLoad(asked.times, asked.data, (ends[0], ends[1]), near, far)


def found_for(
    asked: AdviceInputs, near: LoadedMemory = FAST, far: LoadedMemory = SLOW
) -> tuple[FarResult, FractionsFound]:
    load = under_load(asked, near, far)
    whole = advise(asked, FAR, load_profile("cxl-asic"))
    fractions = find_fractions(asked, whole, load)
    assert fractions is not None
    return whole, fractions


def test_a_program_that_near_memory_limits_is_interleaved() -> None:
    stream = Stalls(512 * MIB, 6, 12, traffic=38 * GB * RUN_S)
    asked = asked_for(stream, budget=512 * MIB)
    whole, fractions = found_for(asked)
    assert whole.point.near == {0}
    assert fractions.whole_s == pytest.approx(RUN_S, rel=1e-6)  # the model reproduces the run
    assert 4 <= fractions.steps[0] <= 7
    assert fractions.is_better(asked.times)
    assert fractions.near_bytes == fractions.steps[0] * 64 * MIB
    assert fractions.best["near"]["utilization"] < 0.9


def test_what_does_not_fit_the_budget_is_near_in_part() -> None:
    table = Stalls(512 * MIB, 2, 6, traffic=1 * GB)
    other = Stalls(64 * MIB, 1, 2.5, traffic=1 * GB)
    asked = asked_for(table, other, budget=320 * MIB)
    whole, fractions = found_for(asked)
    assert whole.point.near == {1}
    assert fractions.steps == {0: 4, 1: 8}
    assert fractions.near_bytes == 320 * MIB
    assert fractions.time_s == pytest.approx(RUN_S + 2, rel=1e-3)
    assert fractions.whole_s == pytest.approx(RUN_S + 4, rel=1e-3)


def test_where_whole_sites_are_fastest_the_plan_stays() -> None:
    sites = [Stalls(64 * MIB, 1, 3, 1 * GB), Stalls(64 * MIB, 1, 1.001, 1 * GB)]
    asked = asked_for(*sites, budget=64 * MIB)
    whole, fractions = found_for(asked)
    assert not fractions.is_better(asked.times)
    kept = with_fractions(asked, whole, fractions, (0, 1), loads(), under_load(asked))
    assert kept.placing == whole.placing
    assert kept.advice.slowdown_plan == whole.advice.slowdown_plan
    assert kept.advice.fractions is not None
    assert not kept.advice.fractions.applied
    assert kept.advice.fractions.exact


def test_a_small_loss_needs_no_whole_site_where_sites_can_be_on_both_memories() -> None:
    """All far loses 40 %, and 5 % with 448 of the table's 512 MiB near; a plan of whole sites needs
    all of it."""
    asked = asked_for(Stalls(512 * MIB, 2, 6, traffic=1 * GB), budget=128 * MIB)
    whole, fractions = found_for(asked)
    needs = {each.within_slowdown: each.near_bytes for each in whole.advice.within}
    assert needs[1.05] == 512 * MIB
    made = with_fractions(asked, whole, fractions, (0, 1), loads(), under_load(asked)).advice
    needs = {each.within_slowdown: each.near_bytes for each in made.within}
    assert needs[1.05] == 448 * MIB
    assert needs[1.2] == 256 * MIB
    slowdowns = [point.slowdown for point in made.curve]
    assert slowdowns == sorted(slowdowns, reverse=True)
    (plan,) = [point for point in made.curve if point.near_budget_bytes == 128 * MIB]
    assert plan.near_bytes == 128 * MIB
    assert plan.slowdown == pytest.approx(1.3, rel=1e-3)


def test_a_service_that_mostly_waits_is_interleaved_for_its_computing_time() -> None:
    """A tenth of the CPU time, which is a thousandth of the wall time."""
    asked = asked_for(Stalls(512 * MIB, 2, 4, traffic=1 * GB), budget=256 * MIB)
    idle = replace(asked, wall_s=1000.0)
    whole = advise(idle, FAR, load_profile("cxl-asic"))
    fractions = find_fractions(idle, whole, under_load(idle))
    assert fractions is not None
    assert fractions.whole_s - fractions.time_s < 0.01 * fractions.whole_s
    assert fractions.is_better(idle.times)


def test_small_sites_stay_whole_and_count_as_load() -> None:
    small = Stalls(1 * MIB, 1, 2, traffic=20 * GB * RUN_S)
    stream = Stalls(512 * MIB, 4, 8, traffic=18 * GB * RUN_S)
    _, fractions = found_for(asked_for(small, stream, budget=1024 * MIB))
    assert fractions.steps[0] == 8
    assert fractions.steps[1] < 8
    assert fractions.best["near"]["bandwidth_bytes_per_s"] > 20 * GB
    assert (
        find_fractions(
            asked_for(small, budget=None),
            advise(asked_for(small, budget=None), FAR, load_profile("cxl-asic")),
            under_load(asked_for(small, budget=None)),
        )
        is None
    )


def test_memory_that_others_use_makes_far_memory_worth_more() -> None:
    stream = Stalls(512 * MIB, 4, 10, traffic=12 * GB * RUN_S)
    asked = asked_for(stream, budget=512 * MIB)
    _, alone = found_for(asked)
    busy = replace(FAST, background=Load(reads=26 * GB))
    _, loaded = found_for(asked, near=busy)
    assert alone.steps[0] == 8
    assert loaded.steps[0] < 8
    assert loaded.whole_s == pytest.approx(RUN_S, rel=1e-6)


def test_more_traffic_than_near_memory_has_is_not_believed() -> None:
    more = Stalls(512 * MIB, 6, 12, traffic=44 * GB * RUN_S)
    _, fractions = found_for(asked_for(more, budget=512 * MIB))
    assert fractions.whole_s == pytest.approx(RUN_S, rel=1e-3)
    twice = replace(more, traffic=80 * GB * RUN_S)
    with pytest.raises(BadInputError, match="traffic of the run is 2 times the bandwidth of n"):
        found_for(asked_for(twice, budget=512 * MIB))


def test_sites_of_different_times_share_near_memory() -> None:
    held = np.array([[512.0 * MIB, 0], [0, 512.0 * MIB]])
    sites = [Stalls(512 * MIB, 2, 4, 1 * GB), Stalls(512 * MIB, 2, 4, 1 * GB)]
    asked = asked_for(*sites, budget=512 * MIB, sizes=held)
    whole, fractions = found_for(asked)
    assert whole.point.near == {0, 1}
    assert fractions.near_bytes == 512 * MIB
    assert not fractions.is_better(asked.times)


def loads() -> tuple[LoadedTier, LoadedTier]:
    common = {"read_share": 1.0, "bandwidth_bytes_per_s": 1.0, "background_bytes_per_s": 0.0}
    common |= {"idle_latency_ns": 1.0, "latency_ns": 1.0, "utilization": 0.5, "at_open_end": False}
    return LoadedTier(name="n", **common), LoadedTier(name="f", **common)  # type: ignore[arg-type]


def test_the_advice_has_the_plan_in_fractions(capsys: pytest.CaptureFixture[str]) -> None:
    asked = asked_for(Stalls(512 * MIB, 2, 6, 1 * GB), Stalls(64 * MIB, 1, 9), budget=320 * MIB)
    whole, fractions = found_for(asked)
    made = with_fractions(asked, whole, fractions, (0, 2), loads(), under_load(asked)).advice
    assert made.fractions is not None
    assert made.fractions.applied
    assert made.slowdown_plan == pytest.approx(1.2, rel=1e-3)
    assert made.time_plan_s == pytest.approx(12, rel=1e-3)
    low, high = made.intervals["slowdown_plan"]
    assert low < 1.2 < high
    assert made.near_bytes == 320 * MIB
    assert {site.site: (site.verdict, site.near_share) for site in made.sites} == {
        0: ("interleaved", 0.5),
        1: ("near", None),
    }
    (plan,) = [point for point in made.curve if point.near_budget_bytes == 320 * MIB]
    assert (plan.near_bytes, plan.slowdown) == (made.near_bytes, made.slowdown_plan)
    assert plan.interleaved
    result = factories.advice().model_copy(update={"fars": [made], "sites": made.sites})
    print_result(terminal.advice(result))
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"s0 50.0% near 512 MiB", shown)
    assert "under its own load: 1.40 ×" in shown
    assert "with sites on both (n at 50% of its bandwidth, f at 50% of its bandwidth)" in shown
    (table,) = page._fractions(result)
    assert [cell.text for cell in table.rows[0]][-3:] == ["50%, 1 ns", "50%, 1 ns", "yes"]
