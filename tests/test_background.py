"""``--background``: memories that other programs use at the same time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar._native import NativeError
from nearfar.model.interleave import Load
from nearfar.model.loaded_profile import under_load
from nearfar.profiles import load_profile
from nearfar.profiles.imports import import_profile
from nearfar.records.figures import Origin
from small_host import write_small_host

DATA = Path(__file__).parent / "data"
GB = 1e9


def test_latency_is_that_of_the_curve_at_the_load() -> None:
    profile = import_profile([DATA / "mess" / "mn5-gpp-highmem.csv"], "dram")
    curve = dict(profile.curve("read_latency_by_load_ns", read_share=1))
    rates = sorted(curve)
    for rate in (rates[0], rates[len(rates) // 2], rates[-1] * 0.9999):
        loaded = under_load(profile, Load(reads=rate)).profile
        figure = loaded.figure("read_latency_ns")
        nearest = min(rates, key=lambda known: abs(known - rate))
        assert figure.value == pytest.approx(curve[nearest], rel=0.01)
        assert figure.origin is Origin.MODELLED
    assert loaded.scalar("read_bandwidth_bytes_per_s") < 0.01 * rates[-1]


def test_a_load_in_between_raises_latency_and_leaves_less_bandwidth() -> None:
    profile = load_profile("ddr5")
    found = under_load(profile, Load(reads=100 * GB))
    assert 111 < found.profile.scalar("read_latency_ns") < 223
    assert found.profile.scalar("read_bandwidth_bytes_per_s") == pytest.approx(167 * GB)
    assert found.notes[0].startswith("ddr5 under 100 GB/s of other programs: 1")
    assert "have only their ends" in found.notes[1]
    assert profile.scalar("read_latency_ns") == 111


def test_a_load_that_leaves_no_bandwidth_is_refused() -> None:
    with pytest.raises(NativeError, match="leaves no bandwidth"):
        under_load(load_profile("ddr5"), Load(reads=267 * GB))


def test_advice_uses_the_figures_under_load(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    write_small_host(tmp_path / "host.toml")
    numbers = (f"{i * 7919 % 1000003}\n" for i in range(600_000))
    (tmp_path / "numbers").write_text("".join(numbers))
    fixed = ("advise", "--host", "host.toml", "--far", "ddr5", "--json", "-", "--out", "run")
    done = run_nearfar(*fixed, "--background", "far=250GB/s", "--", "sort", "numbers")
    assert done.code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["far_latency_ns"] > 200
    assert any("ddr5 under 250 GB/s of other programs" in text for text in answer["warnings"])
    assert json.loads((tmp_path / "run" / "run.json").read_text())["arguments"]["background"] == [
        "far=250GB/s"
    ]


@pytest.mark.parametrize(
    ("load", "why"),
    [
        ("near=1GB/s", "--background near requires latencies under load, and dram is a tier"),
        ("far=900GB/s", "leaves no bandwidth"),
        ("up=1GB/s", "is not a background load"),
    ],
)
def test_bad_loads_are_refused_before_the_program_runs(
    run_nearfar: RunNearfar, tmp_path: Path, load: str, why: str
) -> None:
    done = run_nearfar("advise", "--background", load, "--", "touch", str(tmp_path / "ran"))
    assert done.code == 2
    assert why in " ".join(done.stderr.split())
    assert not (tmp_path / "ran").exists()
