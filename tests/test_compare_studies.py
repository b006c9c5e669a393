"""`nearfar compare` over whole studies: chance, sections as wholes, several runs, the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import factories
from nearfar import stats
from nearfar.cli.app import main
from nearfar.comparison.changes import Comparison
from nearfar.comparison.matching import compare_runs
from nearfar.comparison.shifts import shifts
from nearfar.records.figures import Origin, figure_fields
from nearfar.records.results import LatencyPoint
from nearfar.records.run import Run, Sections
from test_compare import change, save

FIGURES = 400


def measured(rng: np.random.Generator, slower: dict[int, float], spread: float = 0.03) -> Run:
    """A run of one curve with many points, each out of 25 repeats that vary by ``spread``."""
    points = []
    for index in range(FIGURES):
        true = 100.0 * slower.get(index, 1.0)
        repeats = true * np.exp(rng.normal(0, spread, 25))
        estimate = {"latency_ns": stats.median(repeats.tolist())}
        points.append(
            LatencyPoint(region_bytes=4096 + 64 * index, **figure_fields(Origin.MEASURED, estimate))
        )
    base = factories.study()
    assert base.sections.latency is not None
    curve = base.sections.latency.curves[0].model_copy(update={"points": points})
    latency = base.sections.latency.model_copy(update={"curves": [curve]})
    return base.model_copy(update={"sections": Sections(latency=latency)})


def of_latency(now: Run, before: Run) -> Comparison:
    found = compare_runs(now, before)
    kept = [c for c in found.changes if c.now.key == "latency_ns"]
    assert len(kept) == FIGURES
    return Comparison(kept, [], [])


def test_an_unchanged_machine_seldom_fails_and_a_real_change_does() -> None:
    rng = np.random.default_rng(7)
    alarms = apart = 0
    for _ in range(10):
        found = of_latency(measured(rng, {}), measured(rng, {}))
        alarms += bool(found.worse(0.01))
        apart += any(c.verdict_alone(0.01) == "worse" for c in found.changes)
    assert apart >= 5, "without the correction most comparisons would fail"
    assert alarms <= 2
    found = of_latency(measured(rng, {17: 1.4}), measured(rng, {}))
    assert [c.now.conditions for c in found.worse(0.05)] == [found.changes[17].now.conditions]


def test_a_section_that_moved_as_a_whole_is_seen() -> None:
    rng = np.random.default_rng(8)
    slower = dict.fromkeys(range(FIGURES), 1.04)
    (shift,) = shifts(of_latency(measured(rng, slower), measured(rng, {})).changes)
    assert shift.section == "latency"
    assert shift.figures == FIGURES
    assert shift.low < 1.04 < shift.high
    assert shift.worse(0.02)
    assert not shift.worse(0.05)
    (still,) = shifts(of_latency(measured(rng, {}), measured(rng, {})).changes)
    assert still.low < 1 < still.high


def test_rates_cost_more_where_they_are_lower() -> None:
    rates = [(50 + i, (49 + i, 51 + i)) for i in range(6)]
    (shift,) = shifts(
        [change("bandwidth_bytes_per_s", 100, now, (99, 101), bounds) for now, bounds in rates]
    )
    assert 1.8 < shift.cost < 2.0
    exact = [change("bandwidth_bytes_per_s", 100, now) for now, _ in rates]
    assert shifts(exact) == [], "each of them repeats exactly"
    assert shifts([change("latency_ns", 100, 50)] * 4) == [], "too few for an interval"


def test_p_values_are_those_of_welch() -> None:
    # Equal errors: Student's t with twice the freedom; half the interval is t(0.975) errors.
    from scipy.stats import t

    half = t.ppf(0.975, 9) * 0.01
    a, b = (stats.Bounded(v, v * (1 - half), v * (1 + half), 10) for v in (100.0, 105.0))
    (p_value,) = stats.p_values([(a, b)])
    assert p_value == pytest.approx(2 * t.sf(np.log(1.05) / (0.01 * 2**0.5), 18), rel=1e-6)
    assert stats.p_values([(a, a)]) == [1.0]
    assert stats.p_values([]) == []


def test_holm_by_hand() -> None:
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]


def test_several_runs_before_are_one_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = save(factories.study(), tmp_path / "1-fast")
    slow = save(factories.earlier(), tmp_path / "2-slow")
    again = save(factories.earlier(), tmp_path / "3-slow")
    assert main(["compare", fast, again]) == 1
    assert main(["compare", fast, slow, again]) == 0, "as slow was seen before"
    assert "2 runs" in capsys.readouterr().out
    noisy = save(factories.noisy(), tmp_path / "4-noisy")
    assert main(["compare", noisy, fast, again, "--json", "-"]) == 1
    output = capsys.readouterr()
    assert "4-noisy was disturbed: its figures prove no change, so it is left out" in output.err
    document = json.loads(output.out)
    assert document["base"] == [fast]
    assert document["too_noisy"] == [noisy]
    assert any(section["worse"] for section in document["sections"])
    assert all(0 <= f["chance"] <= 1 for f in document["figures"] if f["chance"] is not None)


def test_strict_fails_where_nothing_can_be_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = save(factories.noisy(), tmp_path / "noisy")
    fast = save(factories.study(), tmp_path / "fast")
    assert main(["compare", fast, noisy]) == 0
    assert main(["compare", fast, noisy, "--strict"]) == 4
    assert "next:" in capsys.readouterr().err
    assert main(["compare", fast]) == 2
    assert main(["compare", "ddr4", "ddr5", "hbm"]) == 2
    assert main(["compare", fast, "ddr5", "hbm"]) == 2


def test_last_month_against_today_in_the_report(tmp_path: Path) -> None:
    today, month, between = factories.study(), factories.earlier(), factories.earlier()
    month.started = "2001-12-01T00:00:00Z"
    for run in (today, month, between):
        run.sections = Sections(bandwidth=run.sections.bandwidth, stream=run.sections.stream)
    paths = {
        name: save(run, tmp_path / name)
        for name, run in (("today", today), ("month", month), ("between", between))
    }
    assert main(["report", paths["today"], "--against", paths["month"]]) == 0
    page = (tmp_path / "today" / "report.html").read_text()
    assert "Since the run of 2001-12-01" in page
    assert "Sections as a whole" in page
    assert paths["month"] in page
    assert main(["report", paths["today"]]) == 0
    assert "2001-12-01" not in (tmp_path / "today" / "report.html").read_text()
    assert main(["report", paths["month"], "--against", paths["today"]]) == 0
    assert "Against the run of " in (tmp_path / "month" / "report.html").read_text()
    other = save(factories.earlier().model_copy(update={"verb": "probe"}), tmp_path / "probe")
    assert main(["report", paths["today"], "--against", other]) == 2
