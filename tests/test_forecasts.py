"""Predictions made before a run, their errors, and what published tables say of the same models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from conftest import RunNearfar
from fixed_inputs import FixedClockBench, threads_overlap
from nearfar.measure.forecast_errors import errors_of
from nearfar.model import pipeline_here, published, sharing
from nearfar.model.curves import Curve
from nearfar.model.pipeline import Work
from nearfar.report.html.section import Context
from nearfar.report.html.sections import compete, pipeline, stencil
from nearfar.store import read_run

ONE_EACH = ("--near-threads", "1", "--far-threads", "1")
GIGA = 1e9


# --- the laws --------------------------------------------------------------------------------


def test_two_sides_on_the_same_memory_share_what_near_threads_reach_together() -> None:
    got = sharing.at_once(sharing.Alone(33 * GIGA, 33 * GIGA, 38 * GIGA), 1, 1, shared=True)
    assert got.near == pytest.approx(19 * GIGA, rel=1e-6)
    assert got.far == pytest.approx(19 * GIGA, rel=1e-6)


def test_a_slow_far_side_takes_little() -> None:
    got = sharing.at_once(sharing.Alone(33 * GIGA, 2.2 * GIGA, 38 * GIGA), 1, 1, shared=True)
    assert 0.93 * 33 * GIGA < got.near < 33 * GIGA
    assert 0.9 * 2.2 * GIGA < got.far <= 2.2 * GIGA * (1 + 1e-9)


def test_memories_with_nothing_in_common_keep_what_they_have() -> None:
    alone = sharing.Alone(33 * GIGA, 20 * GIGA, 38 * GIGA)
    got = sharing.at_once(alone, 1, 1, shared=False)
    assert (got.near, got.far, got.together) == (33 * GIGA, 20 * GIGA, 53 * GIGA)


@given(
    near=st.floats(1e8, 1e11),
    far=st.floats(1e8, 1e11),
    gain=st.floats(0.5, 4),
    threads=st.tuples(st.integers(1, 8), st.integers(1, 8)),
)
@settings(deadline=None)
def test_no_side_gains_from_contention(
    near: float, far: float, gain: float, threads: tuple[int, int]
) -> None:
    got = sharing.at_once(sharing.Alone(near, far, near * gain), *threads, shared=True)
    assert 0 < got.near <= near * (1 + 1e-6)
    assert 0 < got.far <= far * (1 + 1e-6)


def pipeline_alone(read: float, transfer: float = 20 * GIGA) -> pipeline_here.Alone:
    """A near side that takes 1 s to generate and 0.5 to analyze, and scales well."""
    return pipeline_here.Alone(
        Curve("generate", {1: 1.0, 2: 0.5}),
        Curve("analyse", {1: 0.5, 2: 0.25}),
        Curve("copy", {1: 20 * GIGA, 2: 40 * GIGA}),
        transfer,
        read,
        Work(1_000_000, 100),
    )


def test_far_memory_that_is_slow_bounds_its_stages() -> None:
    got = pipeline_here.predict(pipeline_alone(read=1 * GIGA, transfer=2 * GIGA), 1, 1)
    assert got.analyse == pytest.approx(4.0)  # five passes over 0.8 GB
    assert got.transfer == pytest.approx(0.8)
    assert got.total == pytest.approx(4.8)
    assert got.generate >= 1.0


def test_far_memory_that_is_fast_leaves_the_software_of_the_stages() -> None:
    got = pipeline_here.predict(pipeline_alone(read=100 * GIGA, transfer=50 * GIGA), 1, 1)
    assert got.analyse == 0.5
    assert got.transfer == pytest.approx(0.08)  # at the speed of near copies
    assert 1.0 < got.generate < 1.1
    assert got.total == got.generate


def test_an_analysis_that_waits_for_its_loads_takes_both_times() -> None:
    alone = pipeline_alone(read=1 * GIGA)
    assert pipeline_here.predict(alone, 1, 1, waits=True).analyse == pytest.approx(4.5)


# --- published tables ------------------------------------------------------------------------


def test_errors_against_published_tables() -> None:
    """Computed from the shipped tables: a change of a model shows here."""
    for found in (published.of_competition(), published.of_stencil(), published.of_pipeline()):
        for error in found:
            print(f"{error.table}, {error.what}: {error.mean_error:.1%} {error.worst_error:+.1%}")
            assert error.cases > 0
            assert error.mean_error <= abs(error.worst_error) * (1 + 1e-9)
    left_out = [e for e in published.of_competition() if "other rows" in e.what]
    assert len(left_out) == 6
    assert all(error.cases == 5 and error.mean_error < 0.03 for error in left_out)
    (transfer,) = {e.worst_error for e in published.of_pipeline() if "transfer" in e.what}
    assert abs(transfer) < 0.08


def test_a_row_is_never_judged_by_itself() -> None:
    for error in published.of_stencil():
        version = error.table.removeprefix("oslo_stencil_").removesuffix(".csv")
        assert f"calibrated by the row of {version}" not in error.what
        assert error.worst_error != 0


# --- records, text and report ----------------------------------------------------------------


def test_only_what_was_predicted_has_an_error() -> None:
    """A split holds copy rates that it was made from, under keys that the run has too."""
    split, result = factories.stencil_split(), factories.stencil_with_alone()
    measured = {
        key: factories.around(getattr(result, key))
        for key in ("near_time_s", "total_time_s", "near_bandwidth_bytes_per_s")
    }
    found = errors_of(split, measured)
    assert [each.key for each in found] == ["near_time_s", "total_time_s"]
    assert found[0].error == pytest.approx(split.near_time_s / (result.near_time_s or 0) - 1)
    assert errors_of(None, measured) == []


def test_our_own_error_stands_above_that_of_published_tables() -> None:
    context = Context(factories.together())
    for make in (compete.section, stencil.section, pipeline.section):
        section = make(context)
        assert section is not None
        ours = [i for i, table in enumerate(section.tables) if "Error" in table.columns]
        theirs = [i for i, t in enumerate(section.tables) if "Published table" in t.columns]
        assert len(ours) == len(theirs) == 1
        assert ours < theirs


def predicted(run_nearfar: RunNearfar, *arguments: str) -> Any:
    done = run_nearfar(
        "bench",
        *arguments,
        *ONE_EACH,
        "--runs",
        "2",
        "--json",
        "-",
        "--out",
        "r",
        "--quiet",
        prepare=threads_overlap,
    )
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    if document["oversubscribed"]:
        pytest.skip("one processor: both threads would share it")
    return document


def assert_predicted(document: Any, reported: Any, keys: list[str]) -> None:
    """Each error is what the prediction says over what the run took."""
    errors = {each["key"]: each["error"] for each in document["errors"]}
    for key in keys:
        assert errors[key] == pytest.approx(reported[key] / document[key] - 1)
        low, high = reported["intervals"][key]
        assert low <= reported[key] <= high
        assert reported["provenance"][key]["origin"] == "modelled"


def test_competition_is_predicted_from_each_side_alone(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    document = predicted(run_nearfar, "compete", "--size", "4MiB", "--iterations", "60")
    (reported,) = document["forecast"]["rows"]
    keys = [f"{side}_bandwidth_bytes_per_s" for side in ("near", "far", "sum")]
    assert_predicted(document, reported, keys)
    assert document["forecast"]["published"]
    sections = read_run(tmp_path / "r").sections
    assert sections.compete_forecast is not None  # on disk before the rows were run
    assert sections.compete_forecast.rows[0].predicted_on == reported["predicted_on"]


def test_a_pipeline_is_predicted_from_its_stages_alone(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    document = predicted(
        run_nearfar,
        "pipeline",
        "--far",
        "paced:dram@optane-100",
        "--elements",
        "100000",
        "--iterations",
        "10",
    )
    keys = [f"{stage}_time_s" for stage in ("generate", "transfer", "analyse", "total")]
    assert_predicted(document, document["forecast"], keys)
    far = document["forecast"]["provenance"]["far_read_bandwidth_bytes_per_s"]
    assert far["origin"] == "emulated"
    assert read_run(tmp_path / "r").sections.pipeline_forecast is not None


@pytest.mark.parametrize("verb", ["compete", "pipeline"])
def test_a_prediction_that_fails_leaves_the_run(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nearfar.cli.app import main
    from nearfar.errors import MachineError
    from nearfar.workflows import forecasting

    def fail(*_: object) -> None:
        raise MachineError("threads took turns", "stop what else runs")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forecasting, f"predict_{verb}", fail)
    monkeypatch.setattr("nearfar.measure.compete.CompeteBench", FixedClockBench)
    small = {
        "compete": ["--size", "1MiB", "--iterations", "20"],
        "pipeline": ["--elements", "5000", "--iterations", "3"],
    }[verb]
    assert main(["bench", verb, *small, *ONE_EACH, "--runs", "1", "--out", "r", "--quiet"]) == 0
    run = read_run(tmp_path / "r")
    assert [(s.section, s.what) for s in run.skipped] == [(verb, "the prediction")]
    assert getattr(run.sections, verb) is not None
    assert getattr(run.sections, f"{verb}_forecast") is None


def test_shared_processors_are_not_predicted(run_nearfar: RunNearfar) -> None:
    many = ["--near-threads", "9", "--far-threads", "8", "--runs", "1", "--json", "-"]
    done = run_nearfar(
        "bench", "compete", *many, "--size", "1MiB", "--iterations", "20", prepare=threads_overlap
    )
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    if not document["oversubscribed"]:
        pytest.skip("a machine with processors for all of them")
    assert "forecast" not in document
    assert document["errors"] == []
