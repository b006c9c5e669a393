"""Records of ``nearfar sim --out``: read again by report, show and compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.store import read_run

COUNTS = {"near": {"reads": 100, "writes": 5}, "far": {"reads": 7, "writes": 9}}
SOURCES = {
    "simulation": ("--pattern", "random", "--requests", "2000", "--engine", "exact"),
    "simulated_counts": ("--counts", "counts.json"),
    "load_curve": ("--curve", "--far", "ddr4-3200", "--requests", "2000"),
}
TITLES = {
    "simulation": "Simulation",
    "simulated_counts": "Simulation",
    "load_curve": "Latency by load",
}


@pytest.mark.parametrize("section", SOURCES)
def test_a_simulation_is_kept_shown_and_reported(
    section: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "counts.json").write_text(json.dumps(COUNTS))
    done = run_nearfar("sim", *SOURCES[section], "--out", "kept", "--json", "result.json")
    assert done.code == 0, done.stderr
    run = read_run(tmp_path / "kept")
    assert (run.verb, run.status) == ("sim", "finished")
    kept = getattr(run.sections, section)
    assert kept is not None
    written = json.loads((tmp_path / "result.json").read_text())
    assert kept.model_dump(mode="json", exclude_none=True).items() <= written.items()
    assert "simulated" in run_nearfar("show", "kept").stdout
    assert run_nearfar("report", "kept").code == 0
    page = (tmp_path / "kept" / "report.html").read_text()
    assert f"<h2>{TITLES[section]}" in page.replace("\n", "")
    assert "simulated" in page


def test_two_simulations_are_compared(run_nearfar: RunNearfar) -> None:
    for name, far in (("slow", "cxl-ddr5"), ("fast", "ddr4-3200")):
        flags = ("--pattern", "random", "--requests", "5000", "--engine", "exact")
        assert run_nearfar("sim", *flags, "--far", far, "--out", name).code == 0
    done = run_nearfar("compare", "slow", "fast")
    assert "better" in done.stdout, done.stderr
    assert run_nearfar("compare", "fast", "slow").code == 1


def test_a_record_is_not_written_over(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    flags = ("sim", "--pattern", "random", "--requests", "100", "--out", "kept")
    assert run_nearfar(*flags).code == 0
    before = (tmp_path / "kept" / "run.json").read_bytes()
    done = run_nearfar(*flags)
    assert done.code == 2
    assert "kept" in done.stderr
    assert (tmp_path / "kept" / "run.json").read_bytes() == before


def test_the_exact_engine_counts_by_bank(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    stream = ("--pattern", "random", "--requests", "20000", "--write-share", "0.3")
    flags = ("--far", "hbm2-2000", "--engine", "exact", "--mapping", "rorababgcoch")
    done = run_nearfar("sim", *stream, *flags, "--out", "kept", "--json", "result.json")
    assert done.code == 0, done.stderr
    far = json.loads((tmp_path / "result.json").read_text())["tiers"]["far"]
    banks = far["banks"]
    places = {(b["channel"], b["rank"], b["bank_group"], b["bank"]) for b in banks}
    assert len(places) == len(banks) == 8 * 16
    assert sum(b["reads"] for b in banks) == far["device_reads"]
    assert sum(b["writes"] for b in banks) == far["device_writes"]
    hits = far["row_hit_share"] * (far["device_reads"] + far["device_writes"])
    assert sum(b["row_hits"] for b in banks) == pytest.approx(hits)
    assert all(b["activates"] >= b["reads"] + b["writes"] - b["row_hits"] > 0 for b in banks)
    assert run_nearfar("report", "kept").code == 0
    assert "Channels of hbm2-2000" in (tmp_path / "kept" / "report.html").read_text()


def test_bandwidth_over_time_is_kept_and_drawn(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    flags = ("--pattern", "random", "--requests", "50000", "--write-share", "0.2")
    done = run_nearfar(
        "sim", *flags, "--far", "ddr4-3200", "--out", "kept", "--json", "result.json"
    )
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "result.json").read_text())
    far = found["tiers"]["far"]
    interval, rates = far["traffic_interval_s"], far["traffic_bytes_per_s"]
    assert "traffic_interval_s" not in found["tiers"]["near"]
    assert 128 < len(rates) <= 256
    last = found["time_s"] - interval * (len(rates) - 1)
    moved = sum(rates[:-1]) * interval + rates[-1] * last
    assert moved == pytest.approx(64 * 50_000, rel=1e-6)
    assert run_nearfar("report", "kept").code == 0
    assert "accesses over time (simulated)" in (tmp_path / "kept" / "report.html").read_text()
