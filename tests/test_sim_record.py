"""Records of ``nearfar sim --out``: read again by report, show and compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.comparison.direction import better
from nearfar.store import read_run
from pages import Page

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
    assert "of unrecorded origin" not in page


def test_two_simulations_are_compared(run_nearfar: RunNearfar) -> None:
    for name, far in (("slow", "cxl-ddr5"), ("fast", "ddr4-3200")):
        flags = ("--pattern", "random", "--requests", "5000", "--engine", "exact")
        assert run_nearfar("sim", *flags, "--far", far, "--out", name).code == 0
    done = run_nearfar("compare", "slow", "fast")
    assert "better" in done.stdout, done.stderr
    assert run_nearfar("compare", "fast", "slow").code == 1


def _two_kept(run_nearfar: RunNearfar) -> None:
    stream = ("--pattern", "random", "--requests", "20000", "--write-share", "0.3")
    flags = (*stream, "--engine", "exact")
    for far in ("ddr4-3200", "hbm2-2000"):
        assert run_nearfar("sim", *flags, "--far", far, "--out", f"of-{far}").code == 0


def test_simulations_of_two_memories_match_in_all_figures(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    _two_kept(run_nearfar)
    run_nearfar("compare", "of-ddr4-3200", "of-hbm2-2000", "--json", "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    figures = {(figure["path"], figure["key"]): figure for figure in found["figures"]}
    assert ("simulation/tiers/far", "read_latency_ns") in figures
    assert ("simulation/tiers/far", "row_hit_share") in figures
    assert better("row_hit_share") is None  # the page policy decides whether hits pay
    assert figures["simulation/tiers/far", "energy_J"]["improved"]
    assert found["only_a"] == found["only_b"] == found["sections"] == []
    assert found["settings"] == [
        {"path": "simulation/tiers/far", "key": "device", "a": "ddr4-3200", "b": "hbm2-2000"}
    ]
    printed = run_nearfar("compare", "of-ddr4-3200", "of-hbm2-2000").stdout
    assert "far device differs: ddr4-3200, then hbm2-2000" in printed
    assert "of 0 on both sides: not shown" in printed


def test_a_report_names_differences_of_figures_without_intervals(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    _two_kept(run_nearfar)
    for record, base in (("hbm2-2000", "ddr4-3200"), ("ddr4-3200", "hbm2-2000")):
        done = run_nearfar("report", f"of-{record}", "--against", f"of-{base}")
        assert done.code == 0, done.stderr
        page = Page((tmp_path / f"of-{record}" / "report.html").read_text()).text()
        assert "agree within their intervals" not in page
        assert "Computed figures that differ, largest change first" in page
        assert f"device differs: {base}, then {record}" in page
    done = run_nearfar("report", "of-ddr4-3200", "of-hbm2-2000")
    done.assert_refused(2, "a report is about one record")
    assert "nearfar report ./of-hbm2-2000 --against ./of-ddr4-3200" in done.stderr


def test_the_energy_of_an_unused_default_memory_is_not_in_the_total(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = ("--pattern", "random", "--requests", "2000", "--far", "ddr4-3200")
    found = []
    for near in ((), ("--near", "dram-snu")):
        done = run_nearfar("sim", *flags, *near, "--json", "result.json")
        assert done.code == 0, done.stderr
        found.append((json.loads((tmp_path / "result.json").read_text()), done.stdout))
    (alone, printed), (both, printed_both) = found
    assert alone["energy_of"] == "far"
    assert alone["energy_J"] == alone["tiers"]["far"]["energy_J"]
    assert "energy of far memory" in printed
    assert both["energy_of"] == "both"
    assert both["energy_J"] > both["tiers"]["far"]["energy_J"]
    assert "energy of both memories" in printed_both


def test_a_compute_bound_program_is_named(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    flags = ("--pattern", "random", "--requests", "2000", "--out", "kept")
    assert "Compute-bound" not in run_nearfar("sim", *flags).stdout
    file = tmp_path / "kept" / "run.json"
    document = json.loads(file.read_text())
    result = document["sections"]["simulation"]
    result["cpu_time_s"] = 0.97 * result["time_s"]
    file.write_text(json.dumps(document))
    words = "Compute-bound: 97.0% of the time is CPU time between requests"
    assert words in " ".join(run_nearfar("show", "kept").stdout.split())
    assert run_nearfar("report", "kept").code == 0
    assert words in Page((tmp_path / "kept" / "report.html").read_text()).text()


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
