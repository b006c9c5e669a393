"""``nearfar bench intset``: its contract, its baselines, and what it may not be taken for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar import _native
from nearfar.store import read_run

pytestmark = pytest.mark.skipif(
    not hasattr(_native, "IntsetBench"), reason="built without libpmemobj"
)


@pytest.mark.parametrize("structure", ["list", "hash", "skip_list"])
def test_a_set_next_to_its_baselines(
    run_nearfar: RunNearfar, tmp_path: Path, structure: str
) -> None:
    done = run_nearfar(
        "bench",
        "intset",
        "--structure",
        structure,
        "--entries",
        "100",
        "--runs",
        "6",
        "--time",
        "0.5",
        "--json",
        "-",
        "--quiet",
        "--out",
        str(tmp_path / "run"),
    )
    assert done.code == 0, done
    reported = json.loads(done.stdout)
    for key in ("ops_per_s", "slowdown", "unflushed_slowdown"):
        low, high = reported["intervals"][key]
        assert low <= reported[key] <= high
        assert reported["provenance"][key]["origin"] == "emulated"
        assert reported["provenance"][key]["statistic"] == "mean"
        assert reported["provenance"][key]["samples"] == 6
    media = {one["medium"]: one for one in reported["series"]}
    assert ("pmdk" in media) == ("pmdk_ratio" in reported) == (structure == "hash")
    assert media["dram"]["provenance"]["ops_per_s"]["origin"] == "measured"
    assert media["dram"]["fences_per_op"] == 0
    assert media["pmem"]["fences_per_op"] >= 0.9 * media["pmem"]["changed_share"]
    assert media["unflushed"]["fences_per_op"] < 0.1 * media["pmem"]["fences_per_op"]
    assert read_run(tmp_path / "run").sections.intset is not None
    page = run_nearfar("report", str(tmp_path / "run"))
    assert page.code == 0, page
    html = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "these ratios do not describe a device" in html


def test_dram_alone_has_no_slowdown(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "bench",
        "intset",
        "--tier",
        "dram",
        "--entries",
        "100",
        "--runs",
        "6",
        "--time",
        "0.2",
        "--json",
        "-",
        "--quiet",
    )
    reported = json.loads(done.stdout)
    assert reported["ops_per_s"] > 0
    assert reported["provenance"]["ops_per_s"]["origin"] == "measured"
    assert "slowdown" not in reported


def test_a_set_on_a_disk_persists_by_msync(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = run_nearfar(
        "bench",
        "intset",
        "--tier",
        f"file:{tmp_path}",
        "--entries",
        "50",
        "--runs",
        "6",
        "--time",
        "0.5",
        "--json",
        "-",
        "--quiet",
    )
    reported = json.loads(done.stdout)
    assert reported["provenance"]["slowdown"]["origin"] == "measured"
    media = {one["medium"]: one for one in reported["series"]}
    assert media["pmem"]["fences_per_op"] > 0  # each is an msync
    assert media["dram"]["fences_per_op"] == 0
    assert list(tmp_path.glob("*.pool")) == []


@pytest.mark.skipif(not Path("/sys/devices/system/node/node0").exists(), reason="no NUMA here")
def test_on_a_node_the_counterpart_is_there_too(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "bench",
        "intset",
        "--tier",
        "numa:0",
        "--entries",
        "50",
        "--runs",
        "6",
        "--time",
        "0.5",
        "--json",
        "-",
        "--quiet",
    )
    assert done.code == 0, done
    reported = json.loads(done.stdout)
    origins = {s["medium"]: s["provenance"]["ops_per_s"]["origin"] for s in reported["series"]}
    assert origins == {
        "pmem": "emulated",
        "unflushed": "emulated",
        "dram": "measured",
        "pmdk": "emulated",
    }
    for operation in ("get", "remove"):
        done = run_nearfar(
            "bench",
            "map",
            "--type",
            "dram",
            "--tier",
            "numa:0",
            "--op",
            operation,
            "-n",
            "200",
            "--runs",
            "1",
            "--json",
            "-",
            "--quiet",
        )
        assert done.code == 0, done
        assert json.loads(done.stdout)["provenance"]["latency_ns"]["origin"] == "measured"


def test_a_tier_that_cannot_hold_a_set_is_refused(run_nearfar: RunNearfar) -> None:
    run_nearfar("bench", "intset", "--tier", "dram,pages=thp").assert_refused(
        2, "can choose neither pages nor pace"
    )
    run_nearfar("bench", "intset", "--tier", "paced:shm:@optane-100").assert_refused(
        2, "neither pace nor page size"
    )
    run_nearfar("bench", "intset", "--update", "101").assert_refused(2, "--update")
    run_nearfar("bench", "intset", "--entries", "900000000000").assert_refused(
        2, "900000000000 entries"
    )
