"""The pipeline against the one published row, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.model import curves, pipeline
from nearfar.model.published import pipeline_inputs
from nearfar.model.queueing import cycle_over_threads
from published import TABLES

INPUTS = pipeline_inputs()
ROW = pipeline.read_calibration(str(TABLES / "oslo_pipeline.csv"))
CALIBRATION = ",".join(pipeline.CALIBRATION_COLUMNS) + "\n"


def test_the_published_row_with_nothing_fitted() -> None:
    got = pipeline.predict(INPUTS, 16)
    split = got.splits[7]
    assert (split.near_threads, got.calibration_level) == (8, 0)
    assert got.calibration == "0: near-only analysis as given, sharing assumed"
    assert "of these 16000000 elements and 5000 iterations" in got.limits[0]
    assert split.transfer_time_s == pytest.approx(ROW.transfer_s, rel=0.08)
    assert split.generate_time_s == pytest.approx(ROW.generate_s, rel=0.1)
    assert split.analyse_time_s == pytest.approx(ROW.analyse_s, rel=0.1)
    assert split.total_time_s == pytest.approx(ROW.total_s, rel=0.1)
    assert split.regret < 0.05  # eight and eight, the split that was published


def test_the_published_row_calibrated() -> None:
    got = pipeline.predict(INPUTS, 16, pipeline.calibrate(INPUTS, ROW))
    split = got.splits[7]
    assert split.analyse_time_s == pytest.approx(ROW.analyse_s)
    assert split.generate_time_s == pytest.approx(ROW.generate_s, rel=0.002)
    assert split.total_time_s == pytest.approx(ROW.total_s, rel=0.01)
    assert got.calibration_level == 2


@given(threads=st.integers(2, 16), calibrated=st.booleans())
@settings(deadline=None)
def test_splits(threads: int, calibrated: bool) -> None:
    known = pipeline.calibrate(INPUTS, ROW) if calibrated else None
    got = pipeline.predict(INPUTS, threads, known)
    assert [s.near_threads + s.far_threads for s in got.splits] == [threads] * (threads - 1)
    best = min(got.splits, key=lambda s: s.total_time_s)
    assert got.best_near_threads == best.near_threads
    assert best.regret == 0
    for s in got.splits:
        assert s.total_time_s == pytest.approx(
            max(s.generate_time_s, s.transfer_time_s + s.analyse_time_s)
        )
        assert s.generate_time_s >= INPUTS.generate.at(s.near_threads) * (1 - 1e-9)
        for key, (low, high) in s.intervals.items():
            assert 0 < low <= getattr(s, key) * (1 + 1e-9)
            assert getattr(s, key) <= high * (1 + 1e-9)


@given(st.floats(0.0, 1e3), st.floats(1e-3, 1e3), st.integers(1, 64))
@settings(deadline=None)
def test_a_closed_queue_stays_within_its_bounds(away: float, served: float, threads: int) -> None:
    cycle = cycle_over_threads(away, served, threads)
    assert cycle >= max(served, (away + served) / threads) * (1 - 1e-9)
    assert cycle <= (away + served * threads) / threads * (1 + 1e-9)


def test_twice_the_iterations_take_twice_the_transfer() -> None:
    twice = pipeline.Inputs(
        INPUTS.near_copy,
        INPUTS.far_copy,
        INPUTS.generate,
        INPUTS.analyse,
        pipeline.Work(16_000_000, 10_000),
    )
    assert pipeline.transfer_s(twice, 5) == pytest.approx(2 * pipeline.transfer_s(INPUTS, 5))


def test_a_curve_between_and_beyond_its_points() -> None:
    curve = curves.Curve("c", {1: 10.0, 4: 40.0, 8: 80.0})
    assert curve.at(2) == pytest.approx(20.0)
    assert curve.roughness(8) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(BadInputError, match="1 to 8 threads, and 9"):
        curve.at(9)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("8,8,147,18,31,134,0,100\n", "column total_s: 100 s is less"),
        ("8,8,147,-1,31,134,0,166\n", "column generate_idle_s: -1 is negative"),
        ("8,8,147,18,,134,0,166\n", "column transfer_s: nothing"),
        ("8,8,147,18,31,134,0,166\n7,9,147,18,31,134,0,166\n", "a second row"),
    ],
)
def test_calibration_is_refused_by_cell(tmp_path: Path, line: str, named: str) -> None:
    (tmp_path / "cal.csv").write_text(CALIBRATION + line)
    with pytest.raises(BadInputError, match=named):
        pipeline.read_calibration(str(tmp_path / "cal.csv"))


def test_an_analysis_faster_than_near_memory_is_refused() -> None:
    with pytest.raises(BadInputError, match="less than"):
        pipeline.calibrate(INPUTS, pipeline.MeasuredRow(8, 8, 147.0, 31.0, 50.0, 150.0))


def arguments(*more: str) -> list[str]:
    return [
        "predict",
        "pipeline",
        "--near-curve",
        str(TABLES / "oslo_stream_near.csv"),
        "--far-curve",
        str(TABLES / "oslo_stream_far.csv"),
        "--generate",
        str(TABLES / "oslo_pipeline_near_only.csv"),
        "--elements",
        "16000000",
        "--iterations",
        "5000",
        *more,
    ]


def test_the_verb(run_nearfar: RunNearfar) -> None:
    calibrated = ("--calibrate", str(TABLES / "oslo_pipeline.csv"))
    done = run_nearfar(*arguments("--threads", "16", *calibrated, "--json", "-"))
    assert (done.code, done.stderr) == (0, "")
    got = json.loads(done.stdout)
    assert got["best_near_threads"] in (7, 8)
    assert len(got["splits"]) == 15
    assert {"generate_time_s", "transfer_time_s", "analyse_time_s", "total_time_s"} == set(
        got["splits"][0]["intervals"]
    )


def test_the_verb_warns_of_a_volume_counted_at_half(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "cal.csv").write_text(CALIBRATION + "8,8,147.03,18.63,15.4,134.42,0.03,165.69\n")
    done = run_nearfar(*arguments("--threads", "16", "--calibrate", "cal.csv"))
    assert done.code == 0
    assert "internal consistency: a transfer" in done.stderr


def test_the_verb_refuses(run_nearfar: RunNearfar) -> None:
    run_nearfar(*arguments("--threads", "40")).assert_refused(2, "and 39 are asked for")
    run_nearfar(*arguments("--threads", "1")).assert_refused(2, "'1' is less than 2")
