"""`nearfar compare`: matching, the direction that is worse, exit codes, and what is printed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

import factories
from conftest import RunNearfar
from factories import advices
from nearfar.cli.app import main
from nearfar.comparison.changes import Change, Comparison
from nearfar.comparison.direction import better
from nearfar.comparison.matching import compare_answers, compare_runs, compare_sheets
from nearfar.comparison.shifts import shifts
from nearfar.profiles import load_profile
from nearfar.profiles.sheets import write_profile
from nearfar.records.advice import FarAdvice
from nearfar.records.depth import LoadedTier
from nearfar.records.numbers import Quantity
from nearfar.records.persistent_structures import IntsetResult, IntsetSeries
from nearfar.records.run import Run, Sections
from nearfar.records.simulation import LoadCurve
from nearfar.report.terminal.comparison import comparison
from nearfar.units import parse_share

Interval = tuple[float, float] | None

#: Sections that the made-up earlier run has none of.
_NOT_BEFORE = {"mapped", "parallelism", "blocks", "access", "persistence", "loaded", "tails"}


def change(
    key: str, before: float, now: float, was: Interval = None, is_: Interval = None
) -> Change:
    return Change(
        now=Quantity("", key, now, (), is_, None), before=Quantity("", key, before, (), was, None)
    )


def save(run: Run, directory: Path) -> str:
    directory.mkdir()
    (directory / "run.json").write_text(run.model_dump_json(indent=1, exclude_none=True))
    return str(directory)


@pytest.mark.parametrize(
    ("key", "direction"),
    [
        ("latency_ns", "lower"),
        ("time_s", "lower"),
        ("energy_J", "lower"),
        ("price_per_gib", "lower"),
        ("read_energy_pJ_per_bit", "lower"),
        ("copy_bandwidth_bytes_per_s", "higher"),
        ("random_read_operations_per_s", "higher"),
        ("endurance_writes", "higher"),
        ("frequency_hz", "higher"),
        ("ops_per_s", "higher"),
        ("slowdown", "lower"),
        ("price_plan", "lower"),
        ("access_unit_bytes", None),
        ("ratio", None),
        ("l3_ways", None),
        ("tREFI_ns", None),
    ],
)
def test_the_key_declares_which_direction_is_worse(key: str, direction: str | None) -> None:
    assert better(key) == direction


def test_worse_is_beyond_the_threshold_in_the_bad_direction() -> None:
    assert change("latency_ns", 100, 106).verdict_alone(0.05) == "worse"
    assert change("latency_ns", 100, 105).verdict_alone(0.05) != "worse", (
        "the threshold itself is not beyond it"
    )
    assert change("latency_ns", 100, 50).verdict_alone(0.05) != "worse"
    assert change("bandwidth_bytes_per_s", 100, 94).verdict_alone(0.05) == "worse"
    assert change("bandwidth_bytes_per_s", 100, 95).verdict_alone(0.05) != "worse"
    assert change("bandwidth_bytes_per_s", 100, 300).verdict_alone(0.05) != "worse"
    assert change("size_bytes", 100, 900).verdict_alone(0.05) != "worse"


def test_a_figure_that_was_zero_is_worse_only_by_intervals_or_counts() -> None:
    """A threshold is a fraction of the old value."""
    assert change("latency_ns", 0, 0).verdict_alone(0.0) != "worse"
    assert change("latency_ns", 0, 1).verdict_alone(0.05) != "worse"
    assert change("faults_per_gib", 0, 1, was=(0, 0), is_=(0.9, 1.1)).verdict_alone(0.05) == "worse"
    assert change("fences_per_op", 0, 1).verdict_alone(0.05) == "worse"
    from_zero = Comparison([change("latency_ns", 0, 1)], [], [])
    console = Console(width=100)
    with console.capture() as capture:
        console.print(comparison(from_zero, [], 0.05, ("a", "b")))
    assert "from 0" in capture.get()
    assert "inf" not in capture.get()


def test_overlapping_intervals_prove_nothing() -> None:
    assert change("latency_ns", 100, 120, (90, 115), (110, 130)).verdict_alone(0.05) != "worse"
    assert change("latency_ns", 100, 120, (95, 105), (110, 130)).verdict_alone(0.05) == "worse"
    assert change("latency_ns", 100, 120, (95, 125), None).verdict_alone(0.05) == "worse", (
        "one interval is none"
    )


def test_the_best_of_several_is_shown_and_decides_nothing() -> None:
    now, before = factories.study(), factories.study()
    assert now.sections.stream is not None
    now.sections.stream.sweep[0].triad.best_bandwidth_bytes_per_s /= 2
    found = compare_runs(now, before)
    assert sum(c.ratio() == pytest.approx(0.5) for c in found.changes) == 1
    assert found.worse(0.05) == []
    now.sections.stream.sweep[0].triad.median_bandwidth_bytes_per_s /= 2
    median = now.sections.stream.sweep[0].triad
    median.intervals = {k: (a / 2, b / 2) for k, (a, b) in median.intervals.items()}
    assert len(compare_runs(now, before).worse(0.05)) == 1


def test_runs_match_by_conditions() -> None:
    found = compare_runs(now=factories.study(), before=factories.earlier())
    assert found.changes
    assert all(c.now.key == c.before.key for c in found.changes)
    assert found.only_before == []
    assert {q.path.split("/")[0] for q in found.only_now} == _NOT_BEFORE


def test_runs_under_one_other_condition_are_compared_along_it() -> None:
    def streams(threads: int, size_bytes: int) -> Run:
        result = factories.stream((threads,)).model_copy(
            update={"sweep": [], "size_bytes": size_bytes}
        )
        return factories.study(sections=Sections(stream=result))

    found = compare_runs(streams(2, 1 << 30), streams(1, 1 << 20))
    assert found.changes
    assert {(each.key, each.before, each.now) for each in found.settings} == {
        ("threads", "1", "2"),
        ("size_bytes", "1 MiB", "1 GiB"),
    }
    same = compare_runs(streams(2, 1 << 20), streams(2, 1 << 20))
    assert same.changes
    assert not same.settings


def test_profiles_match_point_by_point() -> None:
    found = compare_sheets(now=load_profile("optane-100"), before=load_profile("optane-100-lens"))
    keys = {c.now.key for c in found.changes}
    assert "read_latency_ns" in keys
    assert "read_latency_by_region_ns" not in keys
    assert all(c.now.conditions == c.before.conditions for c in found.changes)


@pytest.mark.parametrize(
    ("a", "b", "flags", "code"),
    [
        ("ddr4", "ddr4", [], 0),
        ("ddr4", "optane-100", [], 1),
        ("optane-100", "ddr4", [], 0),
        ("ddr4", "optane-100", ["--threshold", "500%"], 0),
        ("ucy-optane", "optane-100", ["--threshold", "0"], 0),
        ("xeon-5218r", "xeon-6130", [], 0),
    ],
)
def test_exit_codes_of_profiles(
    a: str, b: str, flags: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", a, b, *flags]) == code
    reported = "none is worse" if code == 0 else " worse by more than"
    assert reported in capsys.readouterr().out


def test_exit_codes_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = save(factories.earlier(), tmp_path / "slow")
    fast = save(factories.study(), tmp_path / "fast")
    assert main(["compare", slow, fast]) == 0
    assert main(["compare", fast, slow]) == 1
    assert main(["compare", fast, f"{slow}/run.json", "--threshold", "0.25"]) == 0
    assert capsys.readouterr().err == ""


def test_a_noisy_run_is_said_to_prove_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = save(factories.noisy(), tmp_path / "noisy")
    assert main(["compare", noisy, noisy]) == 0
    output = capsys.readouterr()
    assert output.err.count("was disturbed: its figures prove no change") == 2
    assert output.out.startswith("Cannot decide: disturbed.")


def test_what_one_side_alone_warns_of_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {}
    for name, warnings in {"a": [], "b": ["the trace was cut off"]}.items():
        run = factories.earlier()
        run.sections = Sections(
            load_curve=LoadCurve(
                device="ddr4",
                engine="exact",
                pattern="random",
                read_share=1.0,
                page_policy="open",
                controller=None,
                requests=1000,
                latency_ns=90.0,
                bandwidth_bytes_per_s=1e10,
                points=[],
                warnings=["of one channel", *warnings],
            )
        )
        sides[name] = save(run, tmp_path / name)
    assert main(["compare", sides["b"], sides["a"]]) == 0
    assert capsys.readouterr().err == "b alone: the trace was cut off\n"
    assert main(["compare", sides["b"], sides["b"]]) == 0
    assert capsys.readouterr().err == ""


def test_nothing_is_decided_by_a_noisy_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = factories.earlier()
    slow.noise = factories.noisy().noise
    fast, slow_path = save(factories.study(), tmp_path / "fast"), save(slow, tmp_path / "slow")
    assert main(["compare", fast, slow_path]) == 0
    assert "seem worse by more than 5 %" in capsys.readouterr().out
    assert main(["compare", fast, slow_path, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["too_noisy"] == [slow_path]
    assert document["worse"] > 0


def test_json_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = save(factories.earlier(), tmp_path / "slow")
    fast = save(factories.study(), tmp_path / "fast")
    assert main(["compare", fast, slow, "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    found = compare_runs(now=factories.earlier(), before=factories.study())
    assert len(document["figures"]) == len(found.changes)
    assert document["worse"] == sum(f["worse"] for f in document["figures"]) > 0
    assert document["threshold"] == 0.05
    first = document["figures"][0]
    assert first["ratio"] == pytest.approx(first["b"] / first["a"])
    assert first["intervals"]["a"][0] <= first["a"] <= first["intervals"]["a"][1]
    assert first["provenance"]["b"]["origin"] == "measured"
    assert {f["path"].split("/")[0] for f in document["only_a"]} == _NOT_BEFORE


def test_printed(tmp_path: Path, run_nearfar: RunNearfar, snapshot: SnapshotAssertion) -> None:
    done = run_nearfar("compare", "ddr4", "optane-100", "--threshold", "20%")
    assert done.code == 1
    assert done.stdout == snapshot(name="profiles")
    slow = save(factories.earlier(), tmp_path / "slow")
    fast = save(factories.study(), tmp_path / "fast")
    done = run_nearfar("compare", slow, fast)
    assert done.stdout == snapshot(name="runs")
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("a", "b", "complaint"),
    [
        ("ddr4", "xeon-6130", "a device profile and a host profile cannot be compared"),
        ("ddr4", "nothing", "no record, profile or host nothing"),
        ("ddr5-remote", "ddr5", "ddr5-remote and ddr5 have no figure in common"),
    ],
)
def test_incomparable_sides_are_refused(
    run_nearfar: RunNearfar, a: str, b: str, complaint: str
) -> None:
    done = run_nearfar("compare", a, b)
    done.assert_refused(2, complaint)


def test_a_shipped_name_that_is_a_path_here_is_refused(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "ddr4").mkdir()
    done = run_nearfar("compare", "ddr4", "ddr5")
    done.assert_refused(2, "ddr4 is a shipped profile, and a path here")
    assert "write ./ddr4 for the path" in done.stderr


@pytest.mark.parametrize("text", ["five", "-5%", "5 percent", "nan", "%"])
def test_thresholds_that_are_none(text: str, run_nearfar: RunNearfar) -> None:
    done = run_nearfar("compare", "ddr4", "ddr5", f"--threshold={text}")
    done.assert_refused(2, f"{text!r} is not a share")


def test_shares() -> None:
    assert parse_share("5%") == parse_share("0.05") == parse_share(" 5 %") == 0.05
    assert parse_share("0") == 0


def test_a_file_is_compared_with_a_shipped_profile(tmp_path: Path) -> None:
    mine = load_profile("ddr5")
    mine.figures["read_latency_ns"].value = 130
    write_profile(mine, tmp_path / "mine.toml")
    assert main(["compare", "ddr5", str(tmp_path / "mine.toml")]) == 1
    assert main(["compare", str(tmp_path / "mine.toml"), "ddr5"]) == 0


def intset(ops_per_s: float) -> Run:
    """A run of `bench intset` in seven repeats."""
    run = factories.study()
    for name in type(run.sections).model_fields:
        setattr(run.sections, name, None)
    rates = {"ops_per_s": factories.around(ops_per_s, statistic="mean")}
    others = {key: factories.around(2.0) for key in ("fences_per_op", "lines_per_op")}
    changed = {"changed_share": factories.around(0.5)}
    series = IntsetSeries(**factories.shaped({**rates, **others, **changed}), medium="pmem")
    asked = {"run_time_s": factories.around(1.0)}
    run.sections.intset = IntsetResult(
        **factories.shaped({**rates, **asked}),
        structure="hash",
        entries=1000,
        update_share=0.2,
        tier="shm:",
        cpu=1,
        series=[series],
    )
    return run


def test_a_set_that_is_twice_as_fast_is_better(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, fast = save(intset(1e6), tmp_path / "slow"), save(intset(2e6), tmp_path / "fast")
    assert main(["compare", slow, fast]) == 0
    reported = capsys.readouterr().out
    assert "none is worse by more than 5 %; 2 better." in reported
    assert main(["compare", slow, fast, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["worse"], document["improved"]) == (0, 2)
    assert {f["key"]: f["better"] for f in document["figures"] if f["improved"]} == {
        "ops_per_s": "higher"
    }
    assert main(["compare", fast, slow]) == 1
    assert "2 worse by more than 5 %." in capsys.readouterr().out


def test_a_section_of_rates_that_doubled_is_better() -> None:
    rates = [
        change("ops_per_s", 100 + i, 200 + i, (99 + i, 101 + i), (199 + i, 201 + i))
        for i in range(8)
    ]
    moved = [Change(replace(c.now, path="map"), replace(c.before, path="map")) for c in rates]
    (shift,) = shifts(moved)
    assert shift.cost < 0.6
    assert shift.better(0.05)
    assert not shift.worse(0.05)


def test_a_figure_is_named_by_the_conditions_of_both_sides() -> None:
    """Cells of a sweep over threads: a row is not of one of their numbers of threads."""
    one, two = (
        Quantity("stream", "ops_per_s", 1.0, (("tier", "dram"), ("threads", n)), None, None)
        for n in (1, 2)
    )
    assert Change(one, two).shared().conditions == (("tier", "dram"),)


def test_figures_of_few_repeats_decide_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, fast = intset(1e6), intset(2e6)
    for run in (slow, fast):
        assert run.sections.intset is not None
        for part in (run.sections.intset, *run.sections.intset.series):
            for entry in part.provenance.values():
                entry.samples = 5
    few = [save(slow, tmp_path / "slow"), save(fast, tmp_path / "fast")]
    assert main(["compare", few[1], few[0]]) == 0
    reported = capsys.readouterr().out
    assert "none can be judged." in reported
    assert "of fewer than six repeats have no interval and cannot be judged" in reported


def _sim(tmp_path: Path, name: str, far: str) -> str:
    path = tmp_path / name
    flags = ["--pattern", "random", "--requests", "2000", "--near", "ddr4-3200", "--far", far]
    assert main(["sim", *flags, "--json", str(path), "--quiet"]) == 0
    return str(path)


def test_simulations_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = _sim(tmp_path, "fast.json", "ddr4-3200")
    device = load_profile("ddr4-3200")
    for key in ("tRCD_cycles", "tRAS_cycles", "CL_cycles", "tRP_cycles"):
        device.figures[key].value *= 3  # type: ignore[operator]
    write_profile(device, tmp_path / "slow.toml")
    slow = _sim(tmp_path, "slow.json", str(tmp_path / "slow.toml"))
    capsys.readouterr()
    assert main(["compare", slow, fast, "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    figures = {(f["path"], f["key"]): f for f in document["figures"]}
    assert figures["", "time_s"]["improved"]
    assert figures["tiers/far", "read_latency_ns"]["conditions"] == {}
    assert not {f["key"] for f in document["figures"]} & {"requests_per_s", "limits"}
    assert main(["compare", fast, slow]) == 1
    reported = capsys.readouterr().out
    assert "tiers far read latency  " in reported, "no prose of the answer is in a name"
    assert main(["show", slow]) == 0
    assert "tiers far read latency  " in capsys.readouterr().out


def test_cells_of_a_sweep_are_compared_by_their_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = 'verb = "sim"\nflags = { pattern = "random" }\ngrid = { requests = [2000, 3000] }\n'
    (tmp_path / "s.toml").write_text(suite)
    assert main(["sweep", "s.toml", "--out", "old", "--quiet"]) == 0
    text = (tmp_path / "old" / "run.json").read_text()
    later = text.replace('"nearfar_version": "0.', '"nearfar_version": "9.')
    later = later.replace('"moved_pages": 0', '"moved_pages": 5')
    assert later != text
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "run.json").write_text(later)
    capsys.readouterr()
    assert main(["compare", "old", "new", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["only_a"], document["only_b"]) == ([], [])
    names = [f["figure"] for f in document["figures"]]
    assert "sim time: --pattern random --requests 2000" in names
    assert len(set(names)) == len(names)


def test_a_timing_that_doubled_is_worse_in_ns_whatever_the_clock(tmp_path: Path) -> None:
    base, slow, quick = (load_profile("ddr4-3200") for _ in range(3))
    slow.figures["tRCD_cycles"].value *= 2  # type: ignore[operator]
    for key in ("tRCD_cycles", "tRP_cycles"):  # the same times, in cycles of half the length
        quick.figures[key].value *= 2  # type: ignore[operator]
    found = compare_sheets(now=slow, before=base)
    assert [c.now.key for c in found.worse(0.05)] == ["tRCD_ns"]
    quick.figures["clock_ns"].value /= 2  # type: ignore[operator]
    unchanged = {c.now.key: c.ratio() for c in compare_sheets(now=quick, before=base).changes}
    assert unchanged["tRCD_ns"] == unchanged["tRP_ns"] == pytest.approx(1)


def test_advice_of_two_runs_is_compared() -> None:
    before = advices.advice(3)
    changed = {
        "plan": "other/program.plan",
        "samples": (before.samples or 0) + 7,
        "run_disturbed": not before.run_disturbed,
        "movable_bytes": before.movable_bytes + 4096,
    }
    found = compare_answers(before.model_copy(update=changed), before)
    assert (found.only_before, found.only_now) == ([], [])
    assert {"slowdown_all_far", "far_time_s"} <= {change.now.key for change in found.changes}


def test_each_figure_of_advice_is_compared_once_and_traffic_is_not_judged() -> None:
    before, now = advices.advice(3), advices.advice(3)
    load = LoadedTier(
        name="far",
        read_share=1.0,
        bandwidth_bytes_per_s=4e9,
        background_bytes_per_s=0.0,
        idle_latency_ns=250.0,
        latency_ns=260.0,
        utilization=0.4,
        at_open_end=False,
    )
    for result, factor in ((before, 1.0), (now, 0.5)):
        result.all_far_load = load.model_copy(update={"bandwidth_bytes_per_s": factor * 4e9})
        result.fars = [
            FarAdvice.model_validate({key: getattr(result, key) for key in FarAdvice.model_fields})
        ]
    found = compare_answers(now, before)
    assert not any(change.now.path.startswith("fars") for change in found.changes)
    traffic = [c for c in found.changes if c.now.path == "all_far_load"]
    assert {c.now.key: c.ratio() for c in traffic}["bandwidth_bytes_per_s"] == 0.5
    assert found.worse(0.05) == []
    now.fars.append(now.fars[0].model_copy(update={"far": "optane-100"}))
    before.fars.append(now.fars[1])
    further = compare_answers(now, before)
    assert any(change.now.path.startswith("fars") for change in further.changes)
