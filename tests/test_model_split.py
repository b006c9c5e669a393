"""The split of a stencil: its calibration row, balance, traffic, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.model import layer_condition, split
from nearfar.model.competition import MeasuredPair
from nearfar.model.split_cost import Calibration, beyond_a_copy, software_cost
from nearfar.records.choices import SplitModel, StencilVersion
from published import COLS, MIB, ROWS, competition, machine, stencil

MACHINE = machine()
ARRAY = split.Array(ROWS, COLS, 8)
LARGE = split.Array(100_000, 100_000, 8)
HEAD = "rows,cols,far_rows,near_threads,far_threads,near_s,far_s,total_s\n"
VERSIONS: tuple[StencilVersion, ...] = ("direct", "ghost")


def calibration(version: str) -> Calibration:
    return split.calibrate(MACHINE, split.read_calibration(str(stencil(version)), 8))


def asked(
    version: StencilVersion = "direct",
    array: split.Array = ARRAY,
    far_rows: int | None = None,
    threads: tuple[int, int] = (15, 1),
    model: SplitModel = "nearfar",
) -> split.Question:
    return split.Question(array, version, [threads], far_rows, model)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_calibration_row_is_exact(version: StencilVersion) -> None:
    row = split.read_calibration(str(stencil(version)), 8)[0]
    got = split.predict(MACHINE, asked(version, far_rows=row.far_rows), calibration(version))
    assert got.near_time_s == pytest.approx(row.near_s, rel=1e-9)
    assert got.far_time_s == pytest.approx(row.far_s, rel=1e-9)
    assert got.total_time_s == pytest.approx(row.total_s, rel=1e-9)
    assert got.calibration_level == 3


@given(
    rows=st.integers(100, 10**6),
    cols=st.sampled_from([100, COLS, 60_000, 100_000]),
    near=st.integers(1, 15),
    calibrated=st.booleans(),
)
@settings(deadline=None)  # the first of each width replays its sweep
def test_both_sides_end_within_a_row(rows: int, cols: int, near: int, calibrated: bool) -> None:
    known = CALIBRATED if calibrated else None
    question = asked(array=split.Array(rows, cols, 8), threads=(near, 16 - near))
    got = split.predict(MACHINE, question, known)
    near_row = got.near_time_s / (rows - got.far_rows) if got.far_rows < rows else 0.0
    far_row = got.far_time_s / got.far_rows if got.far_rows else float("inf")
    assert 0 <= got.far_rows <= rows
    assert abs(got.near_time_s - got.far_time_s) <= (near_row + far_row) * (1 + 1e-9)
    for key in ("near_time_s", "far_time_s", "total_time_s"):
        low, high = got.intervals[key]
        assert 0 <= low <= getattr(got, key) <= high


CALIBRATED = calibration("direct")


@given(far_rows=st.integers(0, ROWS - 1))
@settings(deadline=None)
def test_times_follow_the_rows(far_rows: int) -> None:
    less = split.predict(MACHINE, asked(far_rows=far_rows), CALIBRATED)
    more = split.predict(MACHINE, asked(far_rows=far_rows + 1), CALIBRATED)
    assert more.far_time_s > less.far_time_s
    assert more.near_time_s < less.near_time_s


def test_the_search_finds_the_best_of_all_pairs() -> None:
    pairs = split.splits_of(16)
    question = split.Question(ARRAY, "direct", pairs)
    best = split.predict(MACHINE, question, CALIBRATED)
    each = [split.predict(MACHINE, asked(threads=pair), CALIBRATED) for pair in pairs]
    assert best.total_time_s == min(one.total_time_s for one in each)
    assert best.near_threads + best.far_threads == 16


def test_rows_of_the_large_case_do_not_stay_in_cache() -> None:
    small = split.predict(MACHINE, asked(), CALIBRATED)
    large = split.predict(MACHINE, asked(array=LARGE), CALIBRATED)
    factor = {t.name: t.value for t in large.terms}["near traffic factor"]
    assert {t.name: t.value for t in small.terms}["near traffic factor"] < 1.15
    assert 1.3 < factor < 5 / 3
    assert any(t.binds and "memory" in t.name for t in large.terms)


def test_limits_name_unexplained_parts() -> None:
    got = split.predict(MACHINE, asked(array=LARGE), CALIBRATED)
    assert any("29 %" in limit for limit in got.limits)
    alone = split.predict(MACHINE, asked(), None)
    assert alone.calibration_level == 0
    assert any("lower bounds" in limit for limit in alone.limits)


def test_the_thesis_equations() -> None:
    """B is the model's, so the published 61.04 and 3.038 GB/s come out within its residuals."""
    got = split.predict(MACHINE, asked(far_rows=1499, model="oslo"), CALIBRATED)
    assert got.near_time_s == pytest.approx((ROWS - 1499) * COLS * 16 / 61042.84e6, rel=0.01)
    assert got.far_time_s == pytest.approx(1499 * COLS * 16 / 3038.16e6, rel=0.01)
    free = split.predict(MACHINE, asked(model="oslo"))
    assert free.far_rows == pytest.approx(1499, rel=0.01)


def test_a_software_cost_alone_is_the_first_rung() -> None:
    got = split.predict(MACHINE, asked(far_rows=750), software_cost(14.466e-9))
    assert got.calibration_level == 1
    assert got.far_time_s == pytest.approx(0.3431, rel=0.001)


def test_a_side_faster_than_its_memory_is_still_exact() -> None:
    row = split.MeasuredRow(ARRAY, 750, 15, 1, 0.1, 0.05, 0.11)
    got = split.predict(MACHINE, asked(far_rows=750), split.calibrate(MACHINE, [row]))
    assert got.near_time_s == pytest.approx(0.1)
    assert got.far_time_s == pytest.approx(0.05)


def test_a_calibration_row_of_the_large_case_is_exact() -> None:
    row = split.MeasuredRow(LARGE, 1500, 15, 1, 4.0, 4.5, 5.0)
    known = split.calibrate(MACHINE, [row])
    got = split.predict(MACHINE, asked(array=LARGE, far_rows=1500), known)
    assert got.near_time_s == pytest.approx(4.0)
    assert got.far_time_s == pytest.approx(4.5)
    assert got.total_time_s == pytest.approx(5.0)


@given(cols=st.integers(3, 40_000), share=st.integers(256 * 1024, 4 * MIB))
@settings(deadline=None, max_examples=20)
def test_traffic_stays_between_the_copy_and_three_reads(cols: int, share: int) -> None:
    got = layer_condition.traffic(cols, 8, share, 16)
    assert 0.99 <= got.low.factor <= got.value.factor <= got.high.factor <= 5 / 3 + 0.01


def test_calibration_that_contradicts_itself(tmp_path: Path) -> None:
    for line, named in (
        ("100,100,101,15,1,1,1,1\n", "column far_rows: 101 of 100"),
        ("100,100,0,15,1,1,1,1\n", "column far_rows: 0 of 100"),
        ("100,100,50,15,1,1,2,1\n", "column total_s: 1 s is less"),
        ("100,100,50,0,1,1,1,1\n", "column near_threads: 0 is zero"),
        ("100,100,50,15,1,nan,1,1\n", "column near_s: 'nan'"),
        ("100,100,50,15,1,1,1,1\n100,100,50,15,1,2,2,2\n", "column near_s: 2 contradicts row 1"),
    ):
        (tmp_path / "cal.csv").write_text(HEAD + line)
        with pytest.raises(BadInputError, match=named):
            split.read_calibration(str(tmp_path / "cal.csv"), 8)


# --- the verb --------------------------------------------------------------------------------


@pytest.fixture
def fitted(run_nearfar: RunNearfar) -> list[str]:
    done = run_nearfar("fit", "contention", str(competition("far-far")), "--out", "m.json")
    assert done.code == 0
    return [
        "split",
        "--contention",
        "m.json",
        "--host",
        "xeon-6130",
        "--rows",
        str(ROWS),
        "--cols",
        str(COLS),
        "--element-bytes",
        "8",
        "--kernel",
        "stencil8",
    ]


def test_the_verb(run_nearfar: RunNearfar, fitted: list[str]) -> None:
    done = run_nearfar(
        *fitted,
        "--version",
        "ghost",
        "--near-threads",
        "15",
        "--far-threads",
        "1",
        "--far-rows",
        "750",
        "--calibrate",
        str(stencil("ghost")),
        "--json",
        "-",
    )
    assert done.code == 0, done
    assert "internal consistency: 750 far rows are half" in done.stderr
    got = json.loads(done.stdout)
    assert got["far_time_s"] == pytest.approx(0.3121)
    assert got["total_time_s"] == pytest.approx(0.3138)
    assert got["warnings"]
    searched = json.loads(run_nearfar(*fitted, "--threads", "16", "--json", "-").stdout)
    assert searched["near_threads"] + searched["far_threads"] == 16


def test_the_verb_refuses(run_nearfar: RunNearfar, fitted: list[str]) -> None:
    pair = ("--near-threads", "15", "--far-threads", "1")
    run_nearfar(*fitted).assert_refused(2, "the number of threads is not specified")
    run_nearfar(*fitted, *pair, "--threads", "16").assert_refused(
        2, "--threads conflicts with --near-threads"
    )
    run_nearfar(*fitted, "--near-threads", "15").assert_refused(
        2, "the number of threads is not specified"
    )
    run_nearfar(*fitted, *pair, "--far-rows", "31624").assert_refused(
        2, "of an array of 31623 rows"
    )
    run_nearfar(*fitted, *pair, "--software-ns", "nan").assert_refused(2, "--software-ns")
    run_nearfar(*fitted, "--threads", "17").assert_refused(2, "more than the 16")
    run_nearfar(
        *fitted, *pair, "--software-ns", "1", "--calibrate", str(stencil("direct"))
    ).assert_refused(2, "--calibrate and --software-ns both give")


PAIR = MeasuredPair(1, 1, (30e9, 29e9, 31e9), (2e9, 1.95e9, 2.05e9))
TWO = split.Machine(PAIR, split.CacheShare(1 * MIB, 16 * MIB, 16))
SMALL = split.Array(8000, 8000, 8)


def test_one_measured_row_splits_for_its_own_threads_alone() -> None:
    got = split.predict(TWO, asked(array=SMALL, threads=(1, 1)), Calibration())
    assert got.far_rows == pytest.approx(8000 * 2 / 32, abs=1)
    assert "1 measured row" in got.calibration
    low, high = got.intervals["total_time_s"]
    assert low < got.total_time_s < high
    with pytest.raises(BadInputError, match="2 \\+ 1"):
        split.predict(TWO, asked(array=SMALL, threads=(2, 1)))


def test_what_a_sweep_takes_beyond_a_copy_is_paid_on_both_sides() -> None:
    copy_s = 16 / 32e9
    known = beyond_a_copy(copy_s + 1e-10, copy_s)
    assert known.level == 1
    got = split.predict(TWO, asked(array=SMALL, threads=(1, 1), far_rows=500), known)
    factor = {t.name: t.value for t in got.terms}["near traffic factor"]
    assert got.near_time_s == pytest.approx(7500 * 8000 * (16 * factor / 30e9 + 1e-10))
    assert got.far_time_s == pytest.approx(500 * 8000 * (16 * factor / 2e9 + 1e-10))


def test_a_sweep_that_beats_the_copy_lowers_the_near_side_alone() -> None:
    known = beyond_a_copy(0.9 * 16 / 32e9, 16 / 32e9)
    plain = split.predict(TWO, asked(array=SMALL, threads=(1, 1), far_rows=500))
    got = split.predict(TWO, asked(array=SMALL, threads=(1, 1), far_rows=500), known)
    assert got.near_time_s == pytest.approx(0.9 * plain.near_time_s)
    assert got.far_time_s == pytest.approx(plain.far_time_s)
