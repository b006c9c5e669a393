"""``nearfar bench compete``: drops and what caused them, plans, and the verb end to end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from fixed_inputs import threads_overlap
from nearfar.errors import BadInputError
from nearfar.measure import compete, drops, together
from nearfar.measure.teams import Teams, check_threads
from nearfar.store import read_run
from nearfar.units import MIB

MILLISECOND = 1_000_000
CPU = str(min(os.sched_getaffinity(0)))
STEP = 16 * MIB


def thread(took_ms: list[float], **grown: dict[int, int]) -> Any:
    """A thread whose counters grow by ``grown[name][i]`` in iteration i; it runs all the time."""

    def totals(each: list[int]) -> list[int]:
        return [sum(each[: i + 1]) for i in range(len(each))]

    wall = [round(ms * MILLISECOND) for ms in took_ms]
    off = grown.get("off_ns", {})
    names = ("steal_ns", "minor_faults", "major_faults", "involuntary_switches")
    return {
        "far": True,
        "cpu": 1,
        "start_ns": 0,
        "wall_ns": totals(wall),
        "cpu_ns": totals([ns - off.get(i, 0) for i, ns in enumerate(wall)]),
        **{
            name: totals([grown.get(name, {}).get(i, 0) for i in range(len(wall))])
            for name in names
        },
    }


def test_a_steady_thread_has_no_drops() -> None:
    assert drops.find(thread([10, 10.5, 11, 9.8, 12.4]), 5, STEP) == []


def test_depth_length_and_start_of_a_drop() -> None:
    (drop,) = drops.find(thread([10, 10, 20, 40, 10, 10, 10]), 7, STEP)
    assert drop.start_s == pytest.approx(0.020)
    assert drop.length_s == pytest.approx(0.060)
    assert drop.depth == pytest.approx(0.75)
    assert drop.excess_s == pytest.approx(0.040)
    assert drop.period_s is None
    assert drop.cause == "unexplained"


def test_iterations_after_the_span_are_not_drops() -> None:
    assert drops.find(thread([10, 10, 10, 10, 90]), 4, STEP) == []
    assert drops.find(thread([10]), 0, STEP) == []


def test_drops_that_come_back_have_a_period() -> None:
    found = drops.find(thread([10, 10, 10, 30] * 5), 20, STEP)
    assert len(found) == 5
    assert all(drop.period_s == pytest.approx(0.060) for drop in found)


@pytest.mark.parametrize(
    ("grown", "cause"),
    [
        ({"off_ns": {2: 15 * MILLISECOND}, "involuntary_switches": {2: 1}}, "pushed aside"),
        ({"off_ns": {2: 15 * MILLISECOND}}, "unexplained"),  # no switch: no record of what took it
        ({"off_ns": {2: 2 * MILLISECOND}, "involuntary_switches": {2: 9}}, "unexplained"),
        ({"steal_ns": {2: 20 * MILLISECOND}}, "steal"),
        ({"steal_ns": {4: 20 * MILLISECOND}}, "steal"),  # looked up a little later
        ({"steal_ns": {0: 20 * MILLISECOND}}, "unexplained"),  # taken before
        ({"off_ns": {2: 15 * MILLISECOND}, "major_faults": {2: 3}}, "page faults"),
        ({"minor_faults": {2: 12}}, "page faults"),  # 12 x 2 MiB at 16 MiB in 10 ms: 15 ms
        ({"minor_faults": {2: 1}}, "unexplained"),
        ({"major_faults": {1: 3}, "involuntary_switches": {3: 4}}, "unexplained"),
    ],
)
def test_a_cause_is_named_only_where_it_accounts_for_half(
    grown: dict[str, dict[int, int]], cause: str
) -> None:
    (drop,) = drops.find(thread([10, 10, 30, 10, 10, 10], **grown), 6, STEP)
    assert drop.cause == cause


def test_near_threads_get_the_first_processors_and_far_ones_the_next() -> None:
    teams = Teams(2, 1, (4, 5, 6))
    assert (teams.near_cpus, teams.far_cpus, teams.oversubscribed) == ([4, 5], [6], False)
    teams = Teams(2, 3, (4, 5, 6))
    assert (teams.near_cpus, teams.far_cpus, teams.oversubscribed) == ([4, 5], [6, 4, 5], True)


def test_more_threads_than_asked_processors_are_refused_others_only_if_absurd() -> None:
    check_threads(2, (0, 1), asked=True)
    check_threads(32, (0, 1), asked=False)
    with pytest.raises(BadInputError):
        check_threads(3, (0, 1), asked=True)
    with pytest.raises(BadInputError):
        check_threads(33, (0, 1), asked=False)


def test_a_sweep_has_both_sides_at_work_in_every_split() -> None:
    assert compete.sweep(4) == ((3, 1), (2, 2), (1, 3))
    assert compete.sweep(2) == ((1, 1),)


@pytest.mark.parametrize(
    ("cpus", "splits"),
    [(2, ((1, 1),)), (3, ((2, 1), (1, 2))), (8, ((7, 1), (4, 4), (1, 7)))],
)
def test_a_whole_study_has_a_curve_of_splits_a_short_one_a_point(cpus: int, splits: Any) -> None:
    teams = together.teams(tuple(range(cpus)))
    whole = together.compete_plan(("dram", "shm:"), teams, MIB, curve=True)
    assert whole.splits == splits
    assert together.compete_plan(("dram", "shm:"), teams, MIB).splits == splits[:1]


@pytest.mark.parametrize(
    ("mode", "far"), [("far-far", "FF"), ("far-near", "FN"), ("near-far", "NF")]
)
def test_each_thread_has_two_arrays_on_its_tiers(mode: Any, far: str) -> None:
    assert compete.tiers_of(mode, "N", "F", (2, 2)) == ["N"] * 4 + list(far) * 2


def test_a_sweep_end_to_end(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "bench", "compete", "--mode", "near-far", "--sweep", "--near-threads", "2",
        "--far-threads", "1", "--size", "1MiB", "--iterations", "40", "--runs", "6", "--out", "r",
        "--json", "-", prepare=threads_overlap,
    )  # fmt: skip
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    rows = document["rows"]
    assert [(r["near_threads"], r["far_threads"]) for r in rows] == [(2, 1), (1, 2)]
    for row in [*rows, document]:
        for side in ("near", "far"):
            key = f"{side}_bandwidth_bytes_per_s"
            low, high = row["intervals"][key]
            assert 0 < low <= row[key] <= high
            assert row["provenance"][key]["origin"] == "emulated"  # shm: stands in
            assert row["provenance"][key]["samples"] == 6
        assert len(row["threads"]) == 3
        assert all(len(t["end_s"]) == len(t["rate_bytes_per_s"]) for t in row["threads"])
        assert {len(t["end_s"]) for t in row["threads"]} == {40}
    assert document["far_threads"] == 2
    kept = read_run(tmp_path / "r").sections.compete
    assert kept is not None
    assert kept.far_bandwidth_bytes_per_s == document["far_bandwidth_bytes_per_s"]


def test_the_table_is_one_that_fits_read(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    from nearfar.model.contention_fit import read_measured

    done = run_nearfar(
        "bench",
        "compete",
        "--near-threads",
        "1",
        "--far-threads",
        "1",
        "--size",
        "1MiB",
        "--iterations",
        "10",
        "--runs",
        "1",
        "--csv",
        "rows.csv",
        "--json",
        "c.json",
        prepare=threads_overlap,
    )
    if done.code == 2 and "share" in done.stderr:
        pytest.skip("one processor: both threads would share it")
    assert done.code == 0, done.stderr
    document = json.loads((tmp_path / "c.json").read_text())
    (row,) = read_measured(tmp_path / "rows.csv")
    assert (row.near_threads, row.far_threads) == (1, 1)
    measured = document["near_bandwidth_bytes_per_s"]
    assert row.near_bandwidth_bytes_per_s == pytest.approx(measured, abs=5e3)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--far", "nowhere:"], 2, "unknown tier"),
        (["--cpus", CPU, "--near-threads", "1", "--far-threads", "1"], 2, "measure the scheduler"),
        (["--near-threads", "500000", "--far-threads", "500000"], 2, "--near-threads"),
        (["--sweep", "--far-threads", "1"], 2, "--sweep splits a number of threads"),
        (["--size", "1KiB"], 2, "too short to be timed"),
        (["--size", "900TiB"], 3, "do not fit"),
        (
            ["--near-threads", "9", "--far-threads", "9", "--csv", "x.csv", "--cpus", CPU],
            2,
            "measure the scheduler",
        ),
        (["--mode", "sideways"], 2, "'sideways' is not one of"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    arguments: list[str], code: int, said: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    run_nearfar("bench", "compete", *arguments).assert_refused(code, said)
    assert not list(tmp_path.glob("nearfar-runs/*"))


def test_shared_processors_are_reported_and_feed_no_table(run_nearfar: RunNearfar) -> None:
    several = str(len(os.sched_getaffinity(0)))
    many = ["--near-threads", several, "--far-threads", "8", "--size", "1MiB", "--runs", "1"]
    refused = run_nearfar("bench", "compete", *many, "--csv", "x.csv")
    refused.assert_refused(2, "such rows feed no fit")
