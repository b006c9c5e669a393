"""Competition: the published rows, rows left out, the file, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.model import contention, contention_file, contention_fit, forms
from published import MODES, competition, contention_model

HEAD = "near_threads,far_threads,near_MBps,far_MBps\n"
NEAR, FAR = "near_bandwidth_bytes_per_s", "far_bandwidth_bytes_per_s"


@pytest.mark.parametrize("mode", MODES)
def test_left_out_rows_of_the_published_tables(mode: str) -> None:
    """Fitted anew from four rows through the public functions, as a reader would check it."""
    rows = contention_fit.read_measured(competition(mode))
    errors = []
    for out in rows:
        model = contention_fit.fit([row for row in rows if row is not out])
        got = contention.predict(model, out.near_threads, out.far_threads)
        errors += [getattr(got, key) / getattr(out, key) - 1 for key in (NEAR, FAR)]
    assert np.mean(np.abs(errors)) < 0.02
    model = contention_fit.fit(rows)
    for side in (model.near, model.far):
        assert side.leave_one_out_mean < 0.03
        assert side.leave_two_out_mean is not None
        assert side.leave_two_out_mean < 0.03


@pytest.mark.parametrize("mode", MODES)
def test_the_rows_themselves(mode: str) -> None:
    model = contention_model(mode)
    for row in model.rows:
        got = contention.predict(model, row.near_threads, row.far_threads)
        assert getattr(got, NEAR) == pytest.approx(row.near_bandwidth_bytes_per_s, rel=0.02)
        assert getattr(got, FAR) == pytest.approx(row.far_bandwidth_bytes_per_s, rel=0.02)
        assert got.calibration_level == 3


@pytest.mark.parametrize("mode", ["far-near", "near-far"])
def test_mixed_copies_from_far_far_rows(mode: str) -> None:
    """Nothing of the mixed table is used: validation against something nearfar did not compute."""
    model = contention_model("far-far")
    for row in contention_fit.read_measured(competition(mode)):
        got = contention.predict(model, row.near_threads, row.far_threads, mixed=True)
        assert getattr(got, NEAR) == pytest.approx(row.near_bandwidth_bytes_per_s, rel=0.085)
        assert getattr(got, FAR) == pytest.approx(row.far_bandwidth_bytes_per_s, rel=0.085)


def test_megabytes_are_decimal() -> None:
    row = contention_fit.read_measured(competition("far-far"))[0]
    assert row.near_bandwidth_bytes_per_s == pytest.approx(61042.84e6)


@given(near=st.integers(1, 15), far=st.integers(1, 15), mixed=st.booleans())
@settings(deadline=None)
def test_predictions_are_ordered_and_positive(near: int, far: int, mixed: bool) -> None:
    model = contention_model()
    if near + far > 16:
        with pytest.raises(BadInputError):
            contention.predict(model, near, far, mixed=mixed)
        return
    got = contention.predict(model, near, far, mixed=mixed)
    for key in (NEAR, FAR):
        low, high = got.intervals[key]
        assert 0 < low <= getattr(got, key) <= high
        assert got.provenance[key].origin == "modelled"


@given(near=st.integers(1, 14), far=st.integers(1, 14))
@settings(deadline=None)
def test_a_thread_more_never_speeds_another_up(near: int, far: int) -> None:
    if near + far > 15:
        return
    before = contention.speeds(contention_model(), near, far)
    after = contention.speeds(contention_model(), near + 1, far)
    assert after[0].value <= before[0].value
    assert after[1].value <= before[1].value


@given(
    c=st.floats(-0.5, 0.1), start=st.floats(1e8, 1e11), name=st.sampled_from(["quarter", "power"])
)
@settings(deadline=None)
def test_a_law_of_the_family_is_found_again(c: float, start: float, name: str) -> None:
    law = forms.Form(name, (float(np.log(start)), c))
    threads = [1, 4, 8, 12, 15]
    found = forms.choose(threads, [law(t) for t in threads])
    assert found(6) == pytest.approx(law(6), rel=1e-6)


def test_rows_below_full_occupancy_report_the_queue() -> None:
    rows = contention_fit.read_measured(competition("far-far"))
    full = contention_fit.fit(rows)
    near, far = contention.speeds(full, 4, 4)
    below = contention.ContentionRow(
        near_threads=4,
        far_threads=4,
        near_bandwidth_bytes_per_s=4 * near.full / 0.8,
        far_bandwidth_bytes_per_s=4 * far.full,
    )
    reported = contention_fit.fit([*rows, below])
    assert reported.near.queueing == pytest.approx(0.4)
    assert reported.far.queueing == pytest.approx(0.0, abs=1e-12)
    assert full.near.queueing_high - full.near.queueing_low == 1
    assert reported.near.queueing_high - reported.near.queueing_low == 0


# --- the file --------------------------------------------------------------------------------


def test_the_file_comes_back_as_it_went(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    contention_file.write_model(contention_model(), path)
    assert contention_file.read_model(path) == contention_model()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": 2}, "version 2"),
        ({"kind": "other"}, "is not a contention model"),
        ({"surplus": 1}, "surplus"),
        ({"full_threads": "16"}, "full_threads"),
        ({"full_threads": 1}, "full_threads"),
        ({"full_threads": 17}, "full_threads: 17, and the rows use at most 16"),
        ({"full_threads": 10**9}, "full_threads"),
        ({"rows": []}, "full_threads: 16, and the rows use at most 0"),
        ({"near": {"form": "cubic"}}, "near"),
    ],
)
def test_a_changed_file_is_refused(tmp_path: Path, change: dict[str, object], named: str) -> None:
    path = tmp_path / "m.json"
    document = json.loads(contention_model().model_dump_json())
    path.write_text(json.dumps({**document, **change}))
    with pytest.raises(BadInputError, match=named):
        contention_file.read_model(path)


@pytest.mark.parametrize(
    ("side", "field", "value"),
    [
        ("near", "coefficients", [5000, 0.0]),
        ("far", "coefficients", [-5000.0, 0.0]),
        ("far", "coefficients", [1.0, 1e308]),
        ("near", "half_width", 1e3),
    ],
)
def test_a_law_beyond_all_numbers_is_refused(
    tmp_path: Path, side: str, field: str, value: object
) -> None:
    path = tmp_path / "m.json"
    document = json.loads(contention_model().model_dump_json())
    document[side] |= {"form": "quarter", field: value}
    path.write_text(json.dumps(document))
    with pytest.raises(BadInputError, match=rf"{side}\.{field}: "):
        contention_file.read_model(path)


def test_too_few_rows_at_full_occupancy_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    document = json.loads(contention_model().model_dump_json())
    path.write_text(json.dumps({**document, "rows": document["rows"][:2]}))
    with pytest.raises(BadInputError, match="rows: 2 use all 16 threads, and a model needs 3"):
        contention_file.read_model(path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"kind": NaN}', "null", "[" * 100_000])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(BadInputError):
        contention_file.read_model(path)


# --- the tables ------------------------------------------------------------------------------

GOOD = "15,1,61042,3038\n8,8,36275,25068\n1,15,5932,46352\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (HEAD + GOOD + "4,12,nan,38006\n", r"row 4 \(line 5\), column near_MBps: 'nan' is not fin"),
        (HEAD + GOOD + "4,12,20550,inf\n", r"row 4 \(line 5\), column far_MBps: 'inf' is not fin"),
        (HEAD + GOOD + "4,12,-1,38006\n", "column near_MBps: -1 is negative"),
        (
            HEAD + GOOD + "4,12,1e308,38006\n",
            r"row 4 \(line 5\), column near_MBps: 1e308 is beyond",
        ),
        (HEAD + GOOD + "4,12,1e-320,38006\n", "column near_MBps: 1e-320 is beyond"),
        (HEAD + GOOD + "4,12,61_042,38006\n", "column near_MBps: '61_042' is not a number"),
        (HEAD + GOOD + "4,1e99,1,38006\n", "column far_threads: .* threads are more than"),
        (HEAD + GOOD + "4,12,1e-99,38006\n2,14,1e99,38006\n", "no law fits these rows: "),
        (HEAD + GOOD + "0,16,1,38006\n", "column near_threads: 0 is zero"),
        (HEAD + GOOD + "4.5,12,1,38006\n", "column near_threads: 4.5 is not a whole"),
        (HEAD + GOOD + "4,12,,38006\n", "column near_MBps: nothing is there"),
        (HEAD + GOOD + "4,12,fast,38006\n", "column near_MBps: 'fast' is not a number"),
        (HEAD + GOOD + "4,12,1\n", r"row 4 \(line 5\): 3 cells.*column far_MBps"),
        (HEAD + GOOD + "8,8,36275,25069\n", "column far_MBps: 25069 contradicts row 2"),
        ("near_threads,far_threads,near_MBps\n1,2,3\n", "lacks the column far_MBps"),
        ("near_threads,near_threads,far_threads,near_MBps,far_MBps\n1,2,3,4,5\n", "has twice"),
        (HEAD, "has no rows"),
        ("", "has no rows"),
        (HEAD + '"4,12\n', "unexpected end"),
        (HEAD + "15,1,61042,3038\n8,8,36275,25068\n1,2,3,4\n", "a fit needs 3"),
    ],
)
def test_bad_tables_are_refused_by_cell(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(BadInputError, match=named):
        contention_fit.fit(contention_fit.read_measured(path))


def test_a_repeated_row_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + GOOD + "8,8,36275.0,25068\n\n")
    assert len(contention_fit.read_measured(path)) == 3


# --- the verbs -------------------------------------------------------------------------------


def test_fit_and_predict(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    fitted = run_nearfar("fit", "contention", str(competition("far-far")), "--out", "m.json")
    assert fitted.code == 0, fitted
    done = run_nearfar(
        "predict",
        "contention",
        "m.json",
        "--near-threads",
        "11",
        "--far-threads",
        "5",
        "--json",
        "-",
    )
    assert (done.code, done.stderr) == (0, "")
    got = json.loads(done.stdout)
    assert got[NEAR] == pytest.approx(47.5e9, rel=0.01)
    assert got[FAR] == pytest.approx(15.8e9, rel=0.01)
    assert set(got["intervals"]) == set(got["provenance"]) == {NEAR, FAR}
    assert any(term["binds"] for term in got["terms"])


def test_verbs_refuse(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(HEAD + "4,12,nan,1\n")
    run_nearfar("fit", "contention", "bad.csv", "--out", "m.json").assert_refused(
        2, "column near_MBps: 'nan' is not finite"
    )
    absent = run_nearfar("fit", "contention", "none.csv", "--out", "m.json")
    absent.assert_refused(2, "cannot read none.csv")
    assert "Errno" not in absent.stderr
    run_nearfar(
        "fit", "contention", str(competition("far-far")), "--out", "no/m.json"
    ).assert_refused(3, "cannot write no/m.json")
    run_nearfar("fit", "contention", str(competition("far-far")), "--out", "m.json")
    over = ("--near-threads", "15", "--far-threads", "2")
    run_nearfar("predict", "contention", "m.json", *over).assert_refused(2, "more than the 16")
    none = run_nearfar("predict", "contention", "none.json", *over)
    none.assert_refused(2, "cannot read none.json")
