"""Counters fitted as functions of the number of operations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.model import counter_fits

N = np.array([1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7])
TRUTHS = {
    "linear": 300.0 + 4.966 * N,
    "power": 12.0 * N**0.6,
    "logarithmic": -2.0 + 0.7 * np.log(N),
    "saturating": 5e5 * N / (2e5 + N),
}
COEFFICIENTS = {
    "linear": (300.0, 4.966),
    "power": (12.0, 0.6),
    "logarithmic": (-2.0, 0.7),
    "saturating": (5e5, 2e5),
}


@pytest.mark.parametrize("form", TRUTHS)
def test_the_form_and_its_coefficients_are_found_again(form: str) -> None:
    found = counter_fits.fit_column("y", N, TRUTHS[form])
    assert found.form == form
    assert (found.a, found.b) == pytest.approx(COEFFICIENTS[form], rel=1e-3)
    assert found.leave_one_out_error < 1e-3


@pytest.mark.parametrize("form", TRUTHS)
def test_intervals_cover_the_truth_under_noise(form: str) -> None:
    """95 % intervals: of 60 coefficients at most 9 may miss (p = 0.002 for 10 and more)."""
    spread = 0.01 * float(np.mean(TRUTHS[form]))
    missed = 0
    for seed in range(30):
        noise = np.random.default_rng(seed).normal(0, spread, len(N))
        found = counter_fits.fit_column("y", N, TRUTHS[form] + noise)
        if found.form != form:
            continue
        for key, truth in zip(("a", "b"), COEFFICIENTS[form], strict=True):
            low, high = found.intervals[key]
            assert low <= getattr(found, key) <= high
            missed += not low <= truth <= high
    assert missed <= 9


def test_a_straight_line_stays_one_under_noise() -> None:
    noise = 1 + np.random.default_rng(1).normal(0, 0.001, len(N))
    assert counter_fits.fit_column("y", N, TRUTHS["linear"] * noise).form == "linear"


def test_correlations_and_a_constant_column() -> None:
    found = counter_fits.correlate(
        {"operations": N, "up": 2 * N, "down": 1e8 - N, "same": np.ones_like(N)}
    )
    first = found.matrix[0]
    assert first[:3] == pytest.approx([1.0, 1.0, -1.0])
    assert first[3] is None


HEAD = "operations,llc_loads,llc_load_misses,miss_ratio\n"
ROWS = [
    "10000,50000,900,0.1",
    "20000,100000,1900,0.2",
    "40000,200000,3000,0.3",
    "80000,400000,5000,0.4",
    "160000,800000,6000,0.5",
]


def written(folder: Path, rows: list[str]) -> Path:
    path = folder / "counters.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("320000,inf,7000,0.5", "row 6 .*column llc_loads: 'inf' is not finite"),
        ("320000,nan,7000,0.5", "row 6 .*column llc_loads: 'nan' is not finite"),
        ("320000,1e308,7000,0.5", "row 6 .*column llc_loads: 1e308 is beyond"),
        ("320000,1e-320,7000,0.5", "row 6 .*column llc_loads: 1e-320 is beyond"),
        ("320000,-4,7000,0.5", "row 6 .*column llc_loads: -4 is negative"),
        ("320000,,7000,0.5", "row 6 .*column llc_loads: nothing is there"),
        ("320000,many,7000,0.5", "row 6 .*column llc_loads: 'many' is not a number"),
        ("0,5,5,0.5", "row 6 .*column operations: 0 is zero"),
        ("1.5,5,5,0.5", "row 6 .*column operations: 1.5 is not a whole number"),
        ("320000,6000,7000,0.5", "row 6 .*column llc_load_misses: contradicts llc_loads"),
        ("320000,9000,7000,1.5", "row 6 .*column miss_ratio: a ratio is above 1"),
        (
            "10000,60000,900,0.1",
            "row 6 .*column llc_loads: 60000 contradicts row 1 of the same oper",
        ),
        ("320000,9000,7000", "row 6 .*3 cells under 4 headings"),
    ],
)
def test_cells_are_refused_by_name(tmp_path: Path, row: str, named: str) -> None:
    with pytest.raises(BadInputError, match=named):
        counter_fits.read_counters(written(tmp_path, [*ROWS, row]))


def test_a_repeated_row_counts_once(tmp_path: Path) -> None:
    columns = counter_fits.read_counters(written(tmp_path, [*ROWS, ROWS[2], "320000,0,0,0"]))
    assert list(columns["operations"]) == [1e4, 2e4, 4e4, 8e4, 16e4, 32e4]


@pytest.mark.parametrize("cell", ["1e100", "1e-100", "0"])
def test_cells_at_the_ends_of_the_range_are_fitted_or_refused(tmp_path: Path, cell: str) -> None:
    for column in ([cell] * 6, [cell, "1", "2", "3", "4", "5"], ["1", "2", "3", "4", "5", cell]):
        rows = [f"{10 ** (i + 2)},{y}" for i, y in enumerate(column)]
        (tmp_path / "c.csv").write_text("operations,y\n" + "\n".join(rows) + "\n")
        columns = counter_fits.read_counters(tmp_path / "c.csv")
        try:
            found = counter_fits.fit(columns).fits[0]
        except BadInputError as refused:
            assert "column y" in str(refused)  # noqa: PT017 (both ends are allowed)
        else:
            figures = (found.a, found.b, *found.intervals["a"], *found.intervals["b"])
            assert np.isfinite([*figures, found.leave_one_out_error]).all()
            assert np.isfinite(list(found.other_forms.values())).all()


def test_too_few_rows_and_columns(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="fewer than 4 different"):
        counter_fits.read_counters(written(tmp_path, ROWS[:3]))
    (tmp_path / "one.csv").write_text("operations\n1\n2\n3\n4\n")
    with pytest.raises(BadInputError, match="no column except operations"):
        counter_fits.read_counters(tmp_path / "one.csv")


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_the_verb_fits_and_draws(ending: str, tmp_path: Path, run_nearfar: RunNearfar) -> None:
    written(tmp_path, ROWS)
    name = f"picture.{ending}"
    done = run_nearfar("fit", "counters", "counters.csv", "--picture", name, "--json", "-")
    assert (done.code, done.stderr) == (0, f"picture: {name}\n")
    got = json.loads(done.stdout)
    assert [fit["name"] for fit in got["fits"]] == ["llc_loads", "llc_load_misses", "miss_ratio"]
    assert got["fits"][0]["form"] == "linear"
    assert len(got["correlation"]["matrix"]) == 4
    drawn = (tmp_path / name).read_text()
    assert "llc_load_misses" in drawn
    assert "Correlation" in drawn
    assert 'src="http' not in drawn


def test_the_verb_prints_and_refuses(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    written(tmp_path, ROWS)
    shown = run_nearfar("fit", "counters", "counters.csv")
    assert shown.code == 0
    assert "linear" in shown.stdout
    run_nearfar("fit", "counters", "counters.csv", "--picture", "x.pdf").assert_refused(
        2, "invalid picture name x.pdf"
    )
    run_nearfar("fit", "counters", "nothing.csv").assert_refused(2, "cannot read nothing.csv")
