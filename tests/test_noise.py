"""The verdict "too noisy", from made-up accounts: no neighbor has to be loud for it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import factories
from nearfar import noise
from nearfar.records.noise import Reliability, SeriesVerdict

if TYPE_CHECKING:
    from nearfar._native import Usage


@dataclass
class FakeMachine:
    """A machine of two processors, its clocks moved by hand (seconds)."""

    wall: float = 100.0
    busy: float = 50.0
    steal: float = 0.0
    own: float = 10.0

    def stat(self) -> str:
        # user nice system idle iowait irq softirq steal guest guest_nice, 100 ticks a second
        user, steal = round(self.busy * 100), round(self.steal * 100)
        return f"cpu  {user} 0 0 12345 67 0 0 {steal} 0 0\ncpu0 1 2 3\n"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    fake = FakeMachine()
    read_text = Path.read_text

    def fake_read(path: Path, *args: str, **options: str) -> str:
        return fake.stat() if path == Path("/proc/stat") else read_text(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", fake_read)
    monkeypatch.setattr(os, "sysconf", lambda _: 100)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "times", lambda: os.times_result((fake.own, 0, 0, 0, fake.wall)))
    monkeypatch.setattr(time, "monotonic", lambda: fake.wall)
    return fake


def usage(cpu_s: float, wall_s: float, switches: int = 0) -> Usage:
    return {
        "cpu_ns": int(cpu_s * 1e9),
        "wall_ns": int(wall_s * 1e9),
        "minor_faults": 0,
        "major_faults": 0,
        "involuntary_switches": switches,
    }


def measure(machine: FakeMachine, *, foreign: float = 0.0, steal: float = 0.0) -> None:
    """Ten seconds on one processor, with so many processors' worth of others' work and theft."""
    machine.wall += 10
    machine.own += 10
    machine.busy += 10 + 10 * foreign
    machine.steal += 10 * steal


def test_a_quiet_machine(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    watch.threads([usage(9.9, 10), usage(9.8, 10)])
    watch.spread("copy", 0.1)
    measure(machine, foreign=0.1)
    verdict = watch.verdict()
    assert not verdict.noisy
    assert verdict.reasons == []
    assert verdict.foreign_cpus == pytest.approx(0.1)
    assert verdict.least_cpu_share == pytest.approx(0.985)
    assert verdict.worst_spread == 0.1


def test_a_busy_neighbor(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    measure(machine, foreign=1.0)
    assert watch.verdict().reasons == ["stream – other processes used 1.00 of 2 CPUs"]


def test_an_observed_process_is_no_neighbor(machine: FakeMachine) -> None:
    watch = noise.Watch("the program")
    measure(machine, foreign=1.0)
    watch.observed(10.0)
    assert not watch.verdict().noisy


@pytest.mark.parametrize(("cpus", "most"), [(1, 0.25), (8, 0.25), (128, 2.56)])
def test_daemons_of_a_large_machine_are_no_neighbors(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, cpus: int, most: float
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    for foreign, noisy in ((0.9 * most, False), (1.1 * most, True)):
        watch = noise.Watch("stream")
        measure(machine, foreign=foreign)
        assert watch.verdict().noisy == noisy


def test_writeback_of_the_kernel_is_not_a_neighbor(machine: FakeMachine) -> None:
    watch = noise.Watch("mapped", kernel_works=True)
    measure(machine, foreign=1.0)
    assert not watch.verdict().noisy


def test_work_before_the_watch_counts_for_nothing(machine: FakeMachine) -> None:
    measure(machine, foreign=2.0)
    watch = noise.Watch("stream")
    measure(machine)
    assert not watch.verdict().noisy


def test_threads_that_were_pushed_aside(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    watch.threads([usage(5, 10, switches=123)])
    measure(machine)
    assert watch.verdict().reasons == [
        "stream – timed threads ran only 50% of their time (123 involuntary switches)"
    ]


def test_a_hypervisor_that_steals(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    measure(machine, steal=0.1)  # of two processors: 5 %
    verdict = watch.verdict()
    assert verdict.steal == pytest.approx(0.05)
    assert verdict.reasons == ["stream – the hypervisor took 5.0% of the CPUs' time"]


def test_points_that_scatter_are_reported(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    watch.spread("triad", 0.9)
    watch.spread("copy", 0.4)
    measure(machine)
    assert watch.verdict().reasons == ["stream – 2 of 2 points spread by over 25% (triad by 90%)"]


def test_a_few_wide_points_of_a_good_curve_are_no_noise(machine: FakeMachine) -> None:
    watch = noise.Watch("latency")
    for region in range(10):
        watch.spread(f"{region} KiB", 0.05 if region < 8 else 2.0)
    measure(machine)
    assert watch.verdict().reasons == []
    watch.spread("10 KiB", 2.0)
    assert watch.verdict().noisy


def test_a_burst_is_not_averaged_away_by_the_calm_around_it(machine: FakeMachine) -> None:
    meter = noise.NoiseMeter()
    for name, foreign in (("latency", 0.0), ("stream", 1.0), ("mapped", 0.0), ("tails", 0.0)):
        watch = noise.Watch(name)
        watch.threads([usage(10 - 4 * foreign, 10)])
        measure(machine, foreign=foreign)
        meter.judge(watch)
    verdict = meter.verdict()
    assert verdict.noisy
    assert {reason.split(" – ")[0] for reason in verdict.reasons} == {"stream"}
    assert verdict.foreign_cpus == pytest.approx(1.0)
    assert verdict.least_cpu_share == pytest.approx(0.6)


def test_a_run_that_measured_nothing_is_not_noisy() -> None:
    assert not noise.NoiseMeter().verdict().noisy


def test_each_figure_has_its_own_verdict(machine: FakeMachine) -> None:
    watch = noise.Watch("latency dram", section="latency")
    watch.point("32 KiB", 0.05)
    watch.point("1 MiB", 0.4, at_edge=True)
    watch.point("8 MiB", 0.4)
    watch.point("16 MiB", 1.4)
    watch.point("32 MiB", 0.0, 0.9)
    watch.point("64 MiB", 0.0, 0.5)
    measure(machine)
    (series,) = watch.verdict().judged
    assert (series.section, series.series) == ("latency", "latency dram")
    assert {f.figure: f.verdict for f in series.figures} == {
        "32 KiB": "steady",
        "1 MiB": "steady",
        "8 MiB": "disturbed",
        "16 MiB": "unusable",
        "32 MiB": "disturbed",
        "64 MiB": "unusable",
    }
    assert series.figures[1].reason == noise.AT_AN_EDGE
    assert all(f.reason for f in series.figures[1:])


def test_the_reason_that_decides_is_the_first(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    watch.threads([usage(9, 10, switches=5)])  # disturbs
    for name in ("copy", "add"):
        watch.point(name, 1.5, 0.9)  # not usable, although its threads only disturb it
    measure(machine)
    (series,) = watch.verdict().judged
    assert series.verdict == "unusable"
    assert series.reasons == [
        "2 of 2 points are unusable (copy: its repeats spread by 150%)",
        "timed threads ran only 90% of their time (5 involuntary switches)",
        "2 of 2 points spread by over 25% (copy by 150%)",
    ]
    assert {figure.reason for figure in series.figures} == {"its repeats spread by 150%"}


def test_the_worst_series_of_a_section_gives_its_first_reason() -> None:
    rows = (("disturbed", "neighbors"), ("unusable", "preempted"), ("steady", ""))
    series = [
        SeriesVerdict(
            section="latency",
            series=f"latency {reason}",
            verdict=Reliability(verdict),
            reasons=[reason] if reason else [],
        )
        for verdict, reason in rows
    ]
    found = factories.judged().noise
    assert found is not None
    found.judged = series
    assert found.by_section() == {"latency": ("unusable", ["neighbors", "preempted"][::-1])}


def test_a_figure_of_few_repeats_says_that_its_spread_is_unknown(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    watch.point("copy", None, few=True)
    measure(machine)
    (figure,) = watch.verdict().judged[0].figures
    assert (figure.verdict, figure.reason) == ("steady", noise.TOO_FEW_TO_JUDGE)


def test_wide_points_at_the_edge_of_a_cache_are_not_blamed_on_others(machine: FakeMachine) -> None:
    watch = noise.Watch("latency")
    for region in range(10):
        watch.point(f"{region} KiB", 2.0, at_edge=True)
    measure(machine)
    verdict = watch.verdict()
    assert not verdict.noisy
    assert verdict.judged[0].verdict == "steady"
    assert verdict.worst_spread == 0.0


def test_a_neighbor_disturbs_all_figures_of_its_series(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    watch.point("copy", 0.01)
    measure(machine, foreign=1.0)
    (series,) = watch.verdict().judged
    assert series.verdict == series.figures[0].verdict == "disturbed"
    assert series.figures[0].reason == "other processes used 1.00 of 2 CPUs"


def test_only_the_laps_that_count_are_judged(machine: FakeMachine) -> None:
    watch = noise.Watch("stream")
    laps = []
    for foreign in (1.0, 0.0, 0.0):
        measure(machine, foreign=foreign)
        laps.append(watch.lap())
    assert [lap.is_calm() for lap in laps] == [False, True, True]
    assert watch.verdict().noisy
    watch.only(laps[1:])
    assert not watch.verdict().noisy
