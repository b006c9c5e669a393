"""`bench sort`, `lbm` and `matmul`: results, records, traces that `sim` takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar

SMALL = {
    "quick": ("sort", "--algorithm", "quick", "--problem-size", "4096"),
    "merge": ("sort", "--algorithm", "merge", "--problem-size", "4096"),
    "lbm": ("lbm", "--problem-size", "16", "--steps", "4"),
    "matmul": ("matmul", "--problem-size", "32"),
}


def run_json(run_nearfar: RunNearfar, *arguments: str) -> dict[str, Any]:
    done = run_nearfar(*arguments, "--json", "-")
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("program", SMALL)
def test_a_program_runs_and_is_recorded(
    program: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    found = run_json(
        run_nearfar,
        "bench",
        *SMALL[program],
        "--runs",
        "2",
        "--out",
        str(tmp_path / "run"),
        "--allocator",
        "malloc",
        "--allocator",
        "hmalloc:near",
    )
    assert found["program"] == program
    assert found["time_s"] > 0
    assert [row["allocator"] for row in found["rows"]] == ["glibc", "hmalloc:near"]
    assert found["rows"][1]["ratio_to_malloc"] > 0
    assert len(found["checksum"]) > 5
    shown = run_nearfar("show", str(tmp_path / "run"))
    assert shown.code == 0, shown.stderr
    assert "arrays from glibc" in shown.stdout
    assert run_nearfar("report", str(tmp_path / "run")).code == 0


@pytest.mark.parametrize("program", SMALL)
def test_its_trace_is_simulated_by_object(
    program: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    done = run_nearfar("bench", *SMALL[program], "--trace", str(trace))
    assert done.code == 0, done.stderr
    memories = ("sim", str(trace), "--near", "dram-snu", "--far", "pcm-snu-ns")
    common = (*memories, "--engine", "exact")
    far = run_json(run_nearfar, *common, "--placement", "all-far")
    assert far["requests"] > 0
    assert far["tiers"]["near"]["reads"] == 0
    placed = run_json(run_nearfar, *common, "--place", "near:object=1")
    assert 0 < placed["tiers"]["near"]["reads"] <= far["tiers"]["far"]["reads"]
    assert (
        placed["tiers"]["near"]["reads"] + placed["tiers"]["far"]["reads"]
        == far["tiers"]["far"]["reads"]
    )
    closed = (*common, "--core", "blocking", "--page-policy", "closed")
    near, waits = (
        run_json(run_nearfar, *closed, "--placement", where)["time_s"]
        for where in ("all-near", "all-far")
    )
    assert near < waits
    blocking = ("--core", "blocking", "--write-policy", "blocking")
    both = run_json(run_nearfar, *memories, "--engine", "both", *blocking)
    assert abs(both["difference"]["time_difference"]) <= 0.05
    assert abs(both["difference"]["energy_difference"]) <= 0.03


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("lbm", "--problem-size", "4"), "too small"),
        (("sort", "--trace", "X", "--after", "l3"), "--after l3"),
        (("sort", "--after", "l2"), "--trace FILE"),
        (("sort", "--trace", "X", "--runs", "3"), "--runs has no effect"),
        (("lbm", "--trace", "X", "--allocator", "hmalloc:near"), "--allocator has no effect"),
        (("matmul", "--trace", "X", "--json", "found.json"), "--json has no effect"),
        (("sort", "--trace", "X", "--problem-size", "8", "--problem-size", "9"), "one size"),
        (("matmul", "--allocator", "nomalloc"), "nomalloc"),
    ],
)
def test_invalid_combinations_are_refused(
    arguments: tuple[str, ...], named: str, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar("bench", *arguments)
    done.assert_refused(2, named)


def test_a_trace_is_never_written_over(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    file = tmp_path / "precious"
    file.write_text("mine")
    done = run_nearfar("bench", "matmul", "--problem-size", "8", "--trace", str(file))
    done.assert_refused(2, "precious")
    assert file.read_text() == "mine"


def test_a_refused_trace_leaves_no_file(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = run_nearfar("bench", "lbm", "--problem-size", "4", "--trace", str(tmp_path / "T"))
    done.assert_refused(2, "a size of 4 is too small")
    assert not list(tmp_path.glob("T*"))
    done = run_nearfar("bench", "sort", "--problem-size", "64", "--trace", "missing/T")
    done.assert_refused(2, "missing/T:")


def test_a_cut_trace_is_reported(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    assert run_nearfar("bench", *SMALL["merge"], "--trace", str(trace)).code == 0
    trace.write_bytes(trace.read_bytes()[:-20])
    run_nearfar("sim", str(trace)).assert_refused(2, "trace is truncated: its end is missing")
    done = run_nearfar("sim", str(trace), "--truncated", "--json", "-")
    assert done.code == 0, done.stderr
    assert "cut short" in done.stderr
