"""The thesis' experiment as a suite: a small one end to end, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.simulation import experiment as experiments

SHIPPED = Path(experiments.__file__).parent / "experiments" / "seoul.toml"


def small(tmp_path: Path) -> Path:
    """The shipped suite with small sizes."""
    text = SHIPPED.read_text()
    for sizes, fewer in (
        ("[1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144]", "[65536]"),
        ("[16, 20, 24]", "[16]"),
        ("[64, 96, 128, 192]", "[96]"),
    ):
        assert sizes in text
        text = text.replace(sizes, fewer)
    file = tmp_path / "small.toml"
    file.write_text(text)
    return file


def test_the_experiment_runs_and_is_reported(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = run_nearfar(
        "sim", "--experiment", str(small(tmp_path)), "--out", str(run), "--json", "-"
    )
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["provenance"]["time_saved"]["origin"] == "simulated"
    assert 0.12 <= found["time_saved"] <= 0.29
    assert 0.33 <= found["energy_saved"] <= 0.42
    rows = found["rows"]
    assert {row["program"] for row in rows} == {"quick", "merge", "lbm", "matmul"}
    assert {row["far"] for row in rows} == {"pcm-snu-ns", "pcm-snu-cycles"}
    for row in rows:
        if row["after"] == "published counts":
            continue
        assert row["default"]["near_reads"] == row["placed"]["far_reads"] == 0
        assert row["default"]["far_reads"] == row["placed"]["near_reads"] > 0
    lbm = [r for r in rows if r["program"] == "lbm" and r["after"] == "l1"]
    waiting = [r for r in lbm if r["write_policy"] == "blocking"]
    posted = [r for r in lbm if r["write_policy"] == "posted"]
    assert all(b["time_saved"] > p["time_saved"] for b, p in zip(waiting, posted, strict=True))
    shown = run_nearfar("show", str(run))
    assert shown.code == 0, shown.stderr
    assert "published" in shown.stdout
    assert run_nearfar("report", str(run)).code == 0
    report = (run / "report.html").read_text()
    assert "Comparison with the published claims" in report
    placed = waiting[0]["placed"]
    assert f"{placed['near_reads']:,}, {placed['near_writes']:,}" in report
    assert "unrecorded origin" not in report
    assert "Nothing was timed" in report
    assert "Idle machine" not in report


def test_the_shipped_suite_is_the_thesis_experiment() -> None:
    suite = experiments.load_experiment("seoul")
    sorts = [p for p in suite.programs if p.program in ("quick", "merge")]
    assert [p.sizes for p in sorts] == [[1 << k for k in range(10, 19)]] * 2
    assert suite.write_policies == ["blocking", "posted"]


def test_an_experiment_sets_the_timeout_of_rows(tmp_path: Path) -> None:
    text = SHIPPED.read_text().replace('page_policy = "closed"', 'page_policy = "timeout"')
    file = tmp_path / "timed.toml"
    file.write_text(text)
    assert experiments.load_experiment(str(file)).controller().timeout_ns == 100
    file.write_text(text.replace("seed = 1", "seed = 1\ntimeout_ns = 20"))
    assert experiments.load_experiment(str(file)).controller().timeout_ns == 20


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("core = ", "heart = ", "core"),
        ('"posted"]', '"later"]', "write_policies"),
        ("seed = 1", "seed = 1\ntimeout_ns = 20", "timeout_ns has no effect unless page_policy"),
        ("]", "", ""),
    ],
)
def test_a_damaged_experiment_is_refused(
    old: str, new: str, named: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(SHIPPED.read_text().replace(old, new))
    done = run_nearfar("sim", "--experiment", str(file))
    done.assert_refused(2, named)


def test_an_unknown_suite_is_refused(run_nearfar: RunNearfar) -> None:
    run_nearfar("sim", "--experiment", "nonesuch").assert_refused(2, "nonesuch")
