"""``nearfar bench pipeline``: the same findings however threads are split, and the verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import RunNearfar
from nearfar._native import PipelineBench, topology
from nearfar.errors import MachineError
from nearfar.measure import pipeline
from nearfar.measure.session import Effort, Session
from nearfar.measure.teams import Teams
from nearfar.store import read_run

CPU = next(cpu["id"] for cpu in topology(None)["cpus"] if cpu["usable"])


@given(
    elements=st.integers(1, 20_000),
    near=st.integers(1, 3),
    far=st.integers(1, 3),
    tier=st.sampled_from(["dram", "shm:"]),
    seed=st.integers(0, 2**64 - 1),
)
@settings(max_examples=25, deadline=None)
def test_findings_are_those_of_one_near_thread_to_the_bit(
    elements: int, near: int, far: int, tier: str, seed: int
) -> None:
    alone = PipelineBench(elements, "dram", tier, [CPU], [], seed).run(6)
    split = PipelineBench(elements, "dram", tier, [CPU] * near, [CPU] * far, seed).run(6)
    assert split["findings"] == alone["findings"]
    assert np.isfinite(split["findings"]).all()


class Silent:
    def step(self, what: str, done: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass


def test_findings_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(PipelineBench):
        def run(self, iterations: int) -> Any:
            run = super().run(iterations)
            if run["transfer_ns"]:
                run["findings"][2] = (0.0,) * 6
            return run

    plan = pipeline.PipelinePlan(5_000, 4, "dram", "shm:", Teams(1, 1, (CPU,)), 1)
    session = Session("test", 1, Silent())
    pipeline.measure(session, plan, Effort(1, 1), 1 << 20)
    monkeypatch.setattr(pipeline, "PipelineBench", Forgetful)
    with pytest.raises(MachineError, match="other figures"):
        pipeline.measure(session, plan, Effort(1, 1), 1 << 20)


def test_time_asleep_until_the_other_side_is_done_does_not_disturb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Waiting(PipelineBench):
        def run(self, iterations: int) -> Any:
            run = super().run(iterations)
            account: Any = {"wall_ns": 100, "cpu_ns": 40, "minor_faults": 0}
            run["members"] = [{**run["members"][0], **account}, {**run["members"][1], **account}]
            return {**run, "generate_idle_ns": 60, "transfer_idle_ns": 30}

    monkeypatch.setattr(pipeline, "PipelineBench", Waiting)
    plan = pipeline.PipelinePlan(5_000, 4, "dram", "shm:", Teams(1, 1, (CPU,)), 1)
    accounts = plan.epoch(1).usages
    assert [(each["cpu_ns"], each["wall_ns"]) for each in accounts] == [(40, 40), (40, 70)]


def run_small(run_nearfar: RunNearfar, *arguments: str) -> Any:
    done = run_nearfar(
        "bench",
        "pipeline",
        "--elements",
        "50000",
        "--iterations",
        "20",
        "--runs",
        "6",
        "--out",
        "r",
        "--json",
        "-",
        *arguments,
    )
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_a_pipeline_end_to_end(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    document = run_small(run_nearfar, "--near-threads", "1", "--far-threads", "1")
    for stage in pipeline.STAGES:
        key = f"{stage}_time_s"
        low, high = document["intervals"][key]
        assert 0 <= low <= document[key] <= high
        assert document["provenance"][key]["origin"] == "emulated"  # shm: stands in
    assert document["total_time_s"] >= document["generate_time_s"]
    assert document["compared_iterations"] == 20
    laps = document["timeline"]
    assert len(laps) == 6 * 5  # two stages near, three far
    assert min(lap["start_s"] for lap in laps) == 0
    assert all(lap["start_s"] <= lap["end_s"] for lap in laps)
    kept = read_run(tmp_path / "r").sections.pipeline
    assert kept is not None
    assert kept.total_time_s == document["total_time_s"]


def test_near_threads_alone_transfer_nothing(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    document = run_small(run_nearfar, "--near-only", "--near-threads", "1", "--csv", "g.csv")
    assert "transfer_time_s" not in document
    assert document["far_threads"] == 0
    assert document["provenance"]["total_time_s"]["origin"] == "measured"
    heads, row = (tmp_path / "g.csv").read_text().splitlines()
    assert heads == "threads,total_s,generate_s,analyse_s"
    assert float(row.split(",")[1]) == pytest.approx(document["total_time_s"], rel=1e-4)


def test_the_row_calibrates_a_prediction(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    from nearfar.model.pipeline import read_calibration

    arguments = ["--near-threads", "1", "--far-threads", "1", "--csv", "cal.csv", "--runs", "1"]
    done = run_nearfar(
        "bench", "pipeline", "--elements", "50000", "--iterations", "20", *arguments, "--quiet"
    )
    if done.code == 2 and "share" in done.stderr:
        pytest.skip("one processor: both threads would share it")
    assert done.code == 0, done.stderr
    row = read_calibration(str(tmp_path / "cal.csv"))
    assert row.total_s >= max(row.generate_s, row.transfer_s + row.analyse_s)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--near-only", "--far-threads", "1"], 2, "--near-only uses no far threads"),
        (
            ["--cpus", str(CPU), "--near-threads", "1", "--far-threads", "1"],
            2,
            "measure the scheduler",
        ),
        (["--elements", "0"], 2, "--elements"),
        (["--elements", "1000000000000"], 3, "do not fit"),
        (["--far", "nowhere:"], 2, "unknown tier"),
    ],
)
def test_bad_input_is_refused_before_anything_is_allocated(
    arguments: list[str], code: int, said: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    run_nearfar("bench", "pipeline", *arguments).assert_refused(code, said)
    assert not list(tmp_path.glob("nearfar-runs/*"))
