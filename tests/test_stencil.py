"""``nearfar bench stencil``: the bits of a serial sweep, whatever is split how; the verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearfar.measure  # noqa: F401  sets where the native core keeps the pace of tiers
from conftest import RunNearfar
from fixed_inputs import far_copies_take_ten_times_as_long
from nearfar._native import StencilBench, topology
from nearfar.profiles.pacing import pace_of
from nearfar.store import read_run

CPU = next(cpu["id"] for cpu in topology(None)["cpus"] if cpu["usable"])


def swept(rows: int, cols: int, sweeps: int, seed: int) -> np.ndarray:
    """A plain serial sweep by NumPy, adding in the order that is promised."""
    first = [StencilBench.first_value(seed, i) for i in range(rows * cols)]
    now = np.array(first).reshape(rows, cols)
    for _ in range(sweeps):
        above, middle, below = now[:-2], now[1:-1], now[2:]
        outer = above + below
        column = outer + middle
        inner = ((column[:, :-2] + column[:, 2:]) + outer[:, 1:-1]) / 8
        now = now.copy()
        if rows > 2 and cols > 2:
            now[1:-1, 1:-1] = inner
    return now


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(st.integers(1, 23))
    return {
        "rows": rows,
        "columns": draw(st.integers(1, 41)),
        "far_rows": draw(st.one_of(st.just(0), st.just(rows), st.integers(0, rows))),
        "version": draw(st.sampled_from(["direct", "ghost"])),
        "near": draw(st.sampled_from(["dram", "dram,pages=4k"])),
        "far": draw(st.sampled_from(["shm:", "dram", "paced:dram@optane-100"])),
        "near_cpus": [CPU] * draw(st.integers(1, 3)),
        "far_cpus": [CPU] * draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 2**64 - 1)),
    }


@given(shapes(), st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_the_result_is_that_of_a_serial_sweep_to_the_bit(
    shape: dict[str, Any], sweeps: int
) -> None:
    bench = StencilBench(**shape)
    bench.run(sweeps)
    expected = swept(shape["rows"], shape["columns"], sweeps, shape["seed"])
    assert np.array(bench.values()).tobytes() == expected.tobytes()


@pytest.mark.parametrize("version", ["direct", "ghost"])
def test_a_split_end_to_end(version: str, tmp_path: Path, run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "bench", "stencil", "--rows", "301", "--cols", "513", "--far-rows", "100", "--version",
        version, "--near-threads", "1", "--far-threads", "1", "--runs", "6", "--out", "r",
        "--json", "-",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    for key in ("near_time_s", "far_time_s", "total_time_s"):
        low, high = document["intervals"][key]
        assert 0 < low <= document[key] <= high
        assert document["provenance"][key]["samples"] == 6
    assert document["total_time_s"] >= max(document["near_time_s"], document["far_time_s"])
    assert document["matches_serial"]
    kept = read_run(tmp_path / "r").sections.stencil
    assert kept is not None
    assert kept.total_time_s == document["total_time_s"]


@pytest.mark.parametrize(("far_rows", "absent"), [("0", "far_time_s"), ("40", "near_time_s")])
def test_a_side_without_rows_has_no_time(
    far_rows: str, absent: str, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        "bench",
        "stencil",
        "--rows",
        "40",
        "--cols",
        "64",
        "--far-rows",
        far_rows,
        "--runs",
        "1",
        "--json",
        "-",
    )
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert absent not in document
    assert document["total_time_s"] > 0


def test_the_row_calibrates_a_split(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    from nearfar.model.split import read_calibration

    done = run_nearfar(
        "bench",
        "stencil",
        "--rows",
        "200",
        "--cols",
        "512",
        "--far-rows",
        "50",
        "--near-threads",
        "1",
        "--far-threads",
        "1",
        "--runs",
        "1",
        "--csv",
        "cal.csv",
        "--quiet",
    )
    if done.code == 2 and "cannot calibrate a split" in done.stderr:
        pytest.skip("one processor: both threads would share it")
    assert done.code == 0, done.stderr
    (row,) = read_calibration(str(tmp_path / "cal.csv"), element_bytes=8)
    assert (row.array.rows, row.far_rows) == (200, 50)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--far-rows", "11"], 2, "11 far rows of an array of 10"),
        (
            ["--far-rows", "5", "--cpus", str(CPU), "--near-threads", "1", "--far-threads", "1"],
            2,
            "measure the scheduler",
        ),
        (["--far-rows", "5", "--far", "nowhere:"], 2, "unknown tier"),
        (["--far-rows", "5", "--cols", "1000000000000"], 3, "fit"),
        (["--far-rows", "0", "--csv", "x.csv"], 2, "such a row cannot calibrate a split"),
        (
            ["--far-rows", "auto", "--split-only", "--csv", "x.csv"],
            2,
            "--split-only measures no row",
        ),
        ([], 2, "Missing option"),
    ],
)
def test_bad_input_is_refused_before_anything_is_allocated(
    arguments: list[str], code: int, said: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    run_nearfar("bench", "stencil", "--rows", "10", *arguments).assert_refused(code, said)
    assert not list(tmp_path.glob("nearfar-runs/*"))


def test_the_planes_of_seven_points_end_to_end(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "bench",
        "stencil",
        "--kernel",
        "stencil7",
        "--rows",
        "12",
        "--cols",
        "32",
        "--far-rows",
        "5",
        "--runs",
        "1",
        "--json",
        "-",
    )
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["matches_serial"]
    assert document["kernel"] == "stencil7"


ONE_EACH = ("--near-threads", "1", "--far-threads", "1")


def test_a_split_is_predicted_kept_and_run_later(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    far = "paced:dram@optane-100"
    done = run_nearfar(
        "bench",
        "stencil",
        "--far",
        far,
        "--far-rows",
        "auto",
        "--split-only",
        "--rows",
        "300",
        "--cols",
        "1024",
        *ONE_EACH,
        "--runs",
        "1",
        "--json",
        "split.json",
        "--quiet",
        prepare=far_copies_take_ten_times_as_long,
    )
    if done.code == 2 and "share processors" in done.stderr:
        pytest.skip("one processor: both threads would share it")
    assert done.code == 0, done.stderr
    split = json.loads((tmp_path / "split.json").read_text())
    assert 0 < split["far_rows"] < 150  # the slower side gets less
    assert split["provenance"]["total_time_s"]["origin"] == "modelled"
    assert split["provenance"]["far_bandwidth_bytes_per_s"]["origin"] == "emulated"
    assert split["calibration_level"] == 1
    low, high = split["intervals"]["total_time_s"]
    assert low <= split["total_time_s"] <= high
    done = run_nearfar("bench", "stencil", "--far-rows", "split.json", "--runs", "1", "--json", "-")
    assert done.code == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["split"]["predicted_on"] == split["predicted_on"]
    assert result["far"] == far
    assert result["far_rows"] == split["far_rows"]
    written_lines = 298 * 1022 * 8 / 64  # those of a sweep of all rows, which the far tier delays
    min_s = written_lines * pace_of("optane-100").write_line_ns / 1e9
    assert result["far_alone_time_s"] > 0.9 * min_s  # jitter moves the mean a little
    assert result["near_alone_time_s"] > 0
    held = run_nearfar("bench", "stencil", "--far-rows", "split.json", "--rows", "9")
    held.assert_refused(2, "--rows is held by split.json")
    for wrong, said in (
        ({"far_rows": -1}, "wrong.json is not a split of a stencil: far_rows"),
        ({"rows": -5}, "wrong.json is not a split of a stencil: rows"),
        ({"near_threads": 0}, "wrong.json is not a split of a stencil: near_threads"),
        ({"far_rows": 301}, "301 far rows of an array of 300"),
    ):
        (tmp_path / "wrong.json").write_text(json.dumps(split | wrong))
        run_nearfar("bench", "stencil", "--far-rows", "wrong.json").assert_refused(2, said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "is not a split of a stencil: "),
        ("[]", "is not a split of a stencil: no JSON object"),
        ("x", "split.json is damaged: line 1, column 1"),
        ('{"kind": "nearfar-stencil-split", "rows": "many"}', "is not a split of a stencil: "),
    ],
)
def test_a_damaged_split_is_refused(
    text: str, said: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    (tmp_path / "split.json").write_text(text)
    run_nearfar("bench", "stencil", "--far-rows", "split.json").assert_refused(2, said)


@pytest.mark.parametrize(
    ("far_rows", "said"),
    [
        ("-1", "--far-rows -1 is not a number of rows"),
        ("some", "--far-rows some is not a number of rows"),
        ("none.json", "cannot read none.json"),
    ],
)
def test_far_rows_are_a_number_auto_or_a_split(
    far_rows: str, said: str, run_nearfar: RunNearfar
) -> None:
    run_nearfar("bench", "stencil", "--far-rows", far_rows).assert_refused(2, said)


def test_an_oversubscribed_split_is_not_predicted(run_nearfar: RunNearfar) -> None:
    run_nearfar(
        "bench",
        "stencil",
        "--far-rows",
        "auto",
        "--rows",
        "64",
        "--cols",
        "64",
        "--near-threads",
        "9999",
        "--far-threads",
        "1",
        "--cpus",
        str(CPU),
    ).assert_refused(2, "measure the scheduler")
