"""Slowdowns under the load that a program puts on far memory itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

import factories
from nearfar.model.interleave import Load
from nearfar.place.advising import FarResult, advise
from nearfar.profiles import load_profile
from nearfar.profiles.loaded_curves import Loaded, LoadedCurves
from nearfar.records.profile import Figure
from nearfar.report import advice_words
from nearfar.workflows.advice_loads import reaches
from test_fractions import FAR, FAST, GB, MIB, RUN_S, SLOW, Stalls, asked_for, under_load

DEVICE = load_profile("cxl-asic")


def advised(*sites: Stalls, is_loaded: bool = True) -> FarResult:
    asked = asked_for(*sites, budget=None)
    return advise(asked, FAR, DEVICE, under_load(asked) if is_loaded else None)


def test_a_program_that_needs_more_bandwidth_than_far_memory_has_takes_as_long_as_its_bytes() -> (
    None
):
    stream = Stalls(512 * MIB, 2, 3, traffic=30 * GB * RUN_S)
    idle = advised(stream, is_loaded=False).advice
    assert idle.slowdown_all_far == pytest.approx(1.1)
    assert idle.all_far_load is None
    found = advised(stream).advice
    assert found.time_all_far_s == pytest.approx(30 * GB * RUN_S / (15 * GB), rel=1e-3)
    assert found.slowdown_movable_far == found.slowdown_all_far
    assert found.all_far_load is not None
    assert found.all_far_load.utilization == pytest.approx(1, rel=1e-3)
    assert found.all_far_load.latency_ns == pytest.approx(600, rel=0.01)
    low, high = found.intervals["slowdown_all_far"]
    assert low == pytest.approx(2, rel=1e-3)  # however short the stalls: the bytes take as long
    assert high >= low


def test_the_curve_and_the_plan_are_under_the_load_of_what_is_far() -> None:
    sites = [Stalls(512 * MIB, 2, 3, traffic=20 * GB * RUN_S), Stalls(256 * MIB, 1, 2, 2 * GB)]
    idle, found = (advised(*sites, is_loaded=loaded).advice for loaded in (False, True))
    slowdowns = [point.slowdown for point in found.curve]
    assert slowdowns[0] == found.slowdown_movable_far
    # 7 s of computing, and stalls of 4 s on an idle memory, which answers 2.24 times as late at
    # 85 % of its bandwidth; the run's own load made near memory 1.25 times as slow
    assert found.time_movable_far_s == pytest.approx(7 + 5 / 1.25 * 2.24, rel=0.01)
    assert slowdowns[0] > idle.curve[0].slowdown + 0.1
    assert slowdowns == sorted(slowdowns, reverse=True)
    assert slowdowns[-1] == pytest.approx(1)  # all near: the observed run
    assert found.slowdown_plan < idle.slowdown_all_far


def test_where_bandwidth_does_not_count_no_figure_changes() -> None:
    sites = [Stalls(512 * MIB, 2, 6, traffic=1 * GB * RUN_S), Stalls(64 * MIB, 1, 2, 1 * GB)]
    idle, found = (advised(*sites, is_loaded=loaded).advice for loaded in (False, True))
    assert found == idle


def test_a_loaded_near_memory_makes_far_memory_lose_less() -> None:
    near_only = Stalls(512 * MIB, 5, 10, traffic=32 * GB * RUN_S)
    asked = asked_for(near_only, budget=None)
    wide = replace(SLOW, curves=LoadedCurves({1.0: (Loaded(0, 200), Loaded(400 * GB, 200))}, ()))
    load = under_load(asked, FAST, wide)
    found = advise(asked, FAR, DEVICE, load).advice
    # at 80 % of its bandwidth near memory answers in about 200 ns, as does far memory
    assert found.slowdown_all_far == pytest.approx(1, abs=0.06)
    busy = under_load(asked, FAST, replace(wide, background=Load(reads=390 * GB)))
    assert advise(asked, FAR, DEVICE, busy).advice.time_all_far_s == pytest.approx(32, rel=0.01)


def test_a_policy_has_the_load_of_its_far_part() -> None:
    asked = asked_for(Stalls(512 * MIB, 2, 3, traffic=30 * GB * RUN_S), budget=None)
    load = under_load(asked)
    assert load.slowdown_of_share(1.0, 1.0) == pytest.approx(1)
    assert load.slowdown_of_share(1.1, 0.0) == pytest.approx(load.slowdown(1.1, {0}))
    assert 1 < load.slowdown_of_share(1.02, 0.4) < load.slowdown_of_share(1.1, 0.0)


def test_the_answer_says_how_much_of_far_memory_is_used() -> None:
    found = advised(Stalls(512 * MIB, 2, 3, traffic=30 * GB * RUN_S)).advice
    result = factories.advice().model_copy(update={"fars": [found], "near_latency_ns": 100.0})
    assert any(
        line.endswith("; with all data far 100% of its bandwidth, 600 ns")
        for line in advice_words.basis(result)
    )


def test_a_curve_below_the_bandwidth_of_one_thread_is_not_used() -> None:
    points = [[1.0, 2 * GB, 100.0], [1.0, 14 * GB, 180.0], [0.5, 12 * GB, 190.0]]
    names = ["read_share", "bandwidth_bytes_per_s"]
    figure = Figure(unit="ns", source="probe", confidence="A", x=names, points=points)
    assert reaches(figure, 13 * GB)
    assert not reaches(figure, 35 * GB)
