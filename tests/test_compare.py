"""`nearfar compare`: matching, the direction that is worse, exit codes, and what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import factories
from conftest import RunNearfar
from nearfar.cli.main import main
from nearfar.profiles import load_profile
from nearfar.profiles.sheets import write_profile
from nearfar.records.compare import Change, better, compare_runs, compare_sheets
from nearfar.records.run import Run
from nearfar.records.walk import Quantity
from nearfar.units import parse_share

Interval = tuple[float, float] | None

#: Sections that the made-up earlier run has none of.
_NOT_BEFORE = {
    "mapped", "parallelism", "blocks", "access", "persistence", "loaded", "tails",
}  # fmt: skip


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
        ("latency_ns", "lower"), ("time_s", "lower"), ("energy_J", "lower"),
        ("price_per_gib", "lower"), ("read_energy_pJ_per_bit", "lower"),
        ("copy_bandwidth_bytes_per_s", "higher"), ("random_read_operations_per_s", "higher"),
        ("endurance_writes", "higher"), ("frequency_hz", "higher"),
        ("access_unit_bytes", None), ("ratio", None), ("l3_ways", None), ("tREFI_ns", None),
    ],
)  # fmt: skip
def test_the_key_tells_which_way_is_worse(key: str, direction: str | None) -> None:
    assert better(key) == direction


def test_worse_is_beyond_the_threshold_in_the_bad_direction() -> None:
    assert change("latency_ns", 100, 106).worse(0.05)
    assert not change("latency_ns", 100, 105).worse(0.05), "the threshold itself is not beyond it"
    assert not change("latency_ns", 100, 50).worse(0.05)
    assert change("bandwidth_bytes_per_s", 100, 94).worse(0.05)
    assert not change("bandwidth_bytes_per_s", 100, 95).worse(0.05)
    assert not change("bandwidth_bytes_per_s", 100, 300).worse(0.05)
    assert not change("size_bytes", 100, 900).worse(0.05)
    assert change("latency_ns", 0, 1).worse(0.05)
    assert not change("latency_ns", 0, 0).worse(0.0)


def test_overlapping_intervals_prove_nothing() -> None:
    assert not change("latency_ns", 100, 120, (90, 115), (110, 130)).worse(0.05)
    assert change("latency_ns", 100, 120, (95, 105), (110, 130)).worse(0.05)
    assert change("latency_ns", 100, 120, (95, 125), None).worse(0.05), "one interval is none"


def test_the_best_of_several_is_shown_and_decides_nothing() -> None:
    now, before = factories.study(), factories.study()
    assert now.sections.stream is not None
    now.sections.stream.sweep[0].triad.best_bandwidth_bytes_per_s /= 2
    found = compare_runs(now, before)
    assert sum(c.ratio() == pytest.approx(0.5) for c in found.changes) == 1
    assert found.worse(0.05) == []
    now.sections.stream.sweep[0].triad.median_bandwidth_bytes_per_s /= 2
    now.sections.stream.sweep[0].triad.intervals.clear()
    assert len(compare_runs(now, before).worse(0.05)) == 1


def test_runs_match_by_conditions() -> None:
    found = compare_runs(now=factories.study(), before=factories.earlier())
    assert found.changes
    assert all(c.now.key == c.before.key for c in found.changes)
    assert found.only_before == []
    assert {q.path.split("/")[0] for q in found.only_now} == _NOT_BEFORE


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
    told = "none is worse" if code == 0 else " worse by more than"
    assert told in capsys.readouterr().out


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
    assert output.err.count("was too noisy: its figures prove no change") == 2
    assert output.out.startswith("Cannot decide: too noisy.")


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
        ("ddr4", "nothing", "there is no record, profile or host nothing"),
        ("ddr5-remote", "ddr5", "ddr5-remote and ddr5 have no figure in common"),
    ],
)
def test_what_cannot_be_compared(run_nearfar: RunNearfar, a: str, b: str, complaint: str) -> None:
    done = run_nearfar("compare", a, b)
    done.assert_refused(2)
    assert complaint in done.stderr


@pytest.mark.parametrize("text", ["five", "-5%", "5 percent", "", "nan", "%"])
def test_thresholds_that_are_none(text: str, run_nearfar: RunNearfar) -> None:
    run_nearfar("compare", "ddr4", "ddr5", f"--threshold={text}").assert_refused(2)


def test_shares() -> None:
    assert parse_share("5%") == parse_share("0.05") == parse_share(" 5 %") == 0.05
    assert parse_share("0") == 0


def test_a_file_is_compared_with_a_shipped_profile(tmp_path: Path) -> None:
    mine = load_profile("ddr5")
    mine.figures["read_latency_ns"].value = 130
    write_profile(mine, tmp_path / "mine.toml")
    assert main(["compare", "ddr5", str(tmp_path / "mine.toml")]) == 1
    assert main(["compare", str(tmp_path / "mine.toml"), "ddr5"]) == 0
