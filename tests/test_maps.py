"""``nearfar bench map``: its contract, its pools, its counts; the map against PMDK's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import shared_memory
from conftest import Outcome, RunNearfar
from nearfar import _native
from nearfar.store import read_run

pytestmark = pytest.mark.skipif(not hasattr(_native, "MapBench"), reason="built without libpmemobj")
FIGURES = (
    "ops_per_s",
    "latency_ns",
    "mean_latency_ns",
    "p50_latency_ns",
    "p9999_latency_ns",
    "worst_cpu_ns",
    "fences_per_op",
    "lines_per_op",
    "time_s",
)


def test_every_figure_has_interval_and_origin(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = run_nearfar(
        "bench",
        "map",
        "-n",
        "500",
        "-n",
        "2000",
        "--runs",
        "6",
        "--compare",
        "pmdk",
        "--json",
        "-",
        "--quiet",
        "--out",
        str(tmp_path / "run"),
    )
    assert done.code == 0, done
    reported = json.loads(done.stdout)
    for key in FIGURES:
        low, high = reported["intervals"][key]
        assert low <= reported[key] <= high
        assert reported["provenance"][key]["origin"] == "emulated"  # shm: is not persistent memory
    assert [point["operations"] for point in reported["sweep"]] == [500, 2000]
    assert reported["operations"] == 2000
    assert (
        reported["fences_per_op"]
        < 1.5
        < 4
        < fences(reported, "map_rp")
        < fences(reported, "tx_8_ranges")
    )
    assert fences(reported, "persist") == 1
    assert all(cost["provenance"]["ratio"]["samples"] == 6 for cost in reported["pmdk"])
    assert read_run(tmp_path / "run").sections.map is not None
    assert (tmp_path / "run" / "report.html").exists() or run_nearfar(
        "report", str(tmp_path / "run")
    ).code == 0


def fences(reported: dict[str, Any], name: str) -> float:
    found: float = next(c["fences_per_op"] for c in reported["pmdk"] if c["name"] == name)
    return found


@pytest.mark.parametrize("type_", ["map", "map_atomic", "map_tx", "map_rp"])
def test_pmempool_accepts_the_pool_that_is_kept(
    run_nearfar: RunNearfar, tmp_path: Path, type_: str
) -> None:
    file = tmp_path / "kept.pool"
    done = run_nearfar(
        "bench",
        "map",
        "--type",
        type_,
        "-n",
        "50",
        "--runs",
        "1",
        "--tier",
        f"file:{file}",
        "--keep",
        "--json",
        "-",
        "--quiet",
    )
    assert done.code == 0, done
    reported = json.loads(done.stdout)
    assert reported["pool"] == str(file)
    assert reported["provenance"]["latency_ns"]["origin"] == "measured"  # by msync, on a disk
    assert "flush_fence_ns" not in reported
    if shutil.which("pmempool") is None:
        pytest.skip("pmempool is not installed")
    for verb in ("check", "info"):
        checked = subprocess.run(["pmempool", verb, file], capture_output=True, text=True)
        assert checked.returncode == 0, checked
    run_nearfar("bench", "map", "-n", "50", "--tier", f"file:{file}", "--keep").assert_refused(
        2, "kept.pool exists"
    )


def test_measuring_leaves_nothing_behind(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    before = shared_memory.files()
    for operation in ("get", "remove"):
        done = run_nearfar(
            "bench",
            "map",
            "--op",
            operation,
            "-n",
            "300",
            "-d",
            "40",
            "--runs",
            "1",
            "--threads",
            "2",
            "--json",
            "-",
            "--quiet",
        )
        assert done.code == 0, done
        reported = json.loads(done.stdout)
        assert reported["load_time_s"] > 0
        assert ("dependent_latency_ns" in reported) == (operation == "get")
        assert ("batched_latency_ns" in reported) == (operation == "get")
        assert len(reported["cpus"]) == 2
    assert shared_memory.left_behind(before) == set()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tier", "dram"), "tier dram cannot hold a pool"),
        (("--type", "dram", "--tier", "shm:"), "a volatile counterpart cannot lie on tier shm"),
        (("--type", "dram", "--keep"), "has no pool to keep"),
        (("--type", "dram", "--compare", "pmdk"), "--compare pmdk compares pools"),
        (("--type", "map_rp", "--tier", "dram", "--keep"), "has no pool to keep"),
        (("--type", "map_tx", "--tier", "dram", "-d", "64"), "keep values of 8 bytes at most"),
        (("--type", "map_atomic", "--tier", "dram,pages=thp"), "can choose neither pages nor pace"),
        (("--alloc",), "only the maps after PMDK"),
        (("-d", "99999999"), "-d"),
        (("--threads", "100000"), "--threads"),
        (("--tier", "shm:/no/such/place/a.pool"), "no directory /no/such/place"),
        (("--tier", "shm:,pages=2m"), "neither pace nor page size"),
        (("--tier", "paced:shm:@optane-100"), "neither pace nor page size"),
        (("--type", "dram", "--tier", "dram,pages=thp"), "can choose neither pages nor pace"),
        (("--tier", "numa:0", "--keep"), "has no files to leave a pool in"),
    ],
)
def test_an_invalid_run_is_refused(
    run_nearfar: RunNearfar, arguments: tuple[str, ...], said: str
) -> None:
    run_nearfar("bench", "map", "-n", "100", *arguments).assert_refused(2, said)


@pytest.mark.parametrize("bench", ["map", "intset"])
def test_a_missing_directory_is_not_a_pool(
    run_nearfar: RunNearfar, tmp_path: Path, bench: str
) -> None:
    done = run_nearfar("bench", bench, "-n", "100", "--tier", f"file:{tmp_path}/missing/a.pool")
    done.assert_refused(2, "no directory")
    assert not (tmp_path / "missing").exists()


def test_a_map_that_does_not_fit_is_refused(run_nearfar: RunNearfar) -> None:
    run_nearfar("bench", "map", "-n", "1000000000", "-d", "65536").assert_refused(3, "does not fit")
    run_nearfar("bench", "map", "-n", "100", "--tier", "numa:62").assert_refused(
        3, "no NUMA node 62"
    )
    device = run_nearfar("bench", "map", "-n", "100", "--tier", "devdax:/dev/dax99.9")
    device.assert_refused(3, "no DAX device /dev/dax99.9")


def test_stream_in_a_pool(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "bench",
        "stream",
        "--tier",
        "shm:",
        "--accessor",
        "pmemobj",
        "--size",
        "1MiB",
        "--runs",
        "2",
        "--threads",
        "1",
        "--json",
        "-",
        "--quiet",
    )
    assert done.code == 0, done
    reported = json.loads(done.stdout)
    assert reported["accessor"] == "pmemobj"
    assert reported["worst_error"] < 1e-12
    assert reported["triad"]["provenance"]["best_bandwidth_bytes_per_s"]["origin"] == "emulated"
    for place, said in (
        (("--tier", "dram"), "tier dram cannot hold a pool"),
        (("--tier", "shm:", "--tier-b", "dram"), "the arrays of a pool lie on one tier"),
    ):
        run_nearfar("bench", "stream", *place, "--accessor", "pmemobj").assert_refused(2, said)


def test_without_libpmemobj_pools_are_refused(tmp_path: Path) -> None:
    """As a core that was built without it: nothing of it is there."""
    program = """
import sys
from nearfar import _native
for name in ("MapBench", "IntsetBench", "PrimitiveBench", "PoolArrayBench", "WordMap"):
    delattr(_native, name)
from nearfar.cli.app import main
sys.exit(main())
"""
    for verb in (
        ("map", "--compare", "pmdk", "-n", "100"),
        ("intset", "--entries", "100"),
        ("stream", "--tier", "shm:", "--accessor", "pmemobj"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, "bench", *verb],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        Outcome(done.returncode, done.stdout, done.stderr).assert_refused(3, "without libpmemobj")
        assert "built without libpmemobj" in done.stderr
        assert "apt-get install libpmemobj-dev" in done.stderr
