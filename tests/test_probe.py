"""``nearfar probe`` end to end, and the plans below it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from nearfar.errors import MachineError
from nearfar.measure import access, arrays, blocks, ceiling, loaded, persistence
from nearfar.measure.arrays import ArrayPlan
from nearfar.measure.latency import LatencyPlan, page_variants
from nearfar.measure.session import Effort, Plan, Session
from nearfar.noise import NoiseMeter
from nearfar.profiles import load_profile
from nearfar.store import read_run
from nearfar.units import KIB, MIB


class Silent:
    def step(self, what: str, done: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass


@pytest.fixture
def session() -> Session:
    return Session("test", 1, Silent(), NoiseMeter())


def measured(section: str, document: dict[str, Any], messages: str) -> bool:
    """Whether a section was measured: a busy machine leaves no time for it, which is reported."""
    return section in document or f"skipped {section}: the whole section (no time" not in messages


def test_a_quick_probe_leaves_a_record_and_a_profile_that_read_back(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        "probe",
        "--quick",
        "--time",
        "15",
        "--region",
        "16MiB",
        "--out",
        str(tmp_path / "p"),
        "--json",
        "-",
    )
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    curve = document["latency"]["curves"][0]
    assert curve["points"][0]["region_bytes"] == 4 * KIB
    for point in curve["points"]:
        low, high = point["intervals"]["latency_ns"]
        assert 0 < low <= point["latency_ns"] <= high
        assert point["provenance"]["latency_ns"]["origin"] == "measured"
        assert point["provenance"]["latency_ns"]["samples"] >= 5
    if measured("parallelism", document, done.stderr):
        low, high = document["parallelism"]["intervals"]["parallelism"]
        assert 0 < low <= document["parallelism"]["parallelism"] <= high
    read_run(tmp_path / "p")
    profile = load_profile(tmp_path / "p" / "profile.toml")
    assert profile.scalar("read_latency_ns") == pytest.approx(curve["points"][-1]["latency_ns"])
    if measured("persistence", document, done.stderr):
        persist = document["persistence"]["points"][0]
        assert persist["provenance"]["fence_ns"]["origin"] == "emulated"  # DRAM persists nothing
        assert profile.figure("write_latency_ns").origin == "emulated"


def test_a_plan_drops_points_not_repeats(session: Session) -> None:
    plan = LatencyPlan("dram", 0, 4 * MIB)
    samples, dropped = session.repeat("latency", "ns", plan, Effort(budget_s=0.01))
    assert dropped
    assert min(len(v) for v in samples.series.values()) >= 5  # each on fresh memory
    assert set(samples.series) | set(dropped) == set(plan.grid)


def test_epochs_in_a_fresh_process_count_like_others(session: Session) -> None:
    plan = blocks.BlockPlan((64, 4096), "dram", MIB, 0)
    samples, _ = session.repeat("blocks", "ns", plan, Effort(budget_s=60, epochs=4))
    assert {len(v) for v in samples.series.values()} == {4}  # one of them was measured apart


def shrink(plan: Plan[Any]) -> list[int]:
    sizes = [len(plan.grid)]
    while (smaller := plan.smaller()) is not None:
        plan = smaller
        sizes.append(len(plan.grid))
    return sizes


LOADS = [loaded.Load(r, w, x) for r, w in loaded.MIXES for x in loaded.SHARES]


@pytest.mark.parametrize(
    "plan",
    [
        blocks.BlockPlan(blocks.BLOCKS, "dram", MIB, 0),
        access.AccessPlan(tuple(access.mixes((1, 2))), "dram", MIB, (0, 1)),
        loaded.LoadedPlan(LOADS, "dram", MIB, MIB, (0, 1)),
        persistence.PersistPlan(persistence.points_for("shm:"), "shm:", 0),
        ArrayPlan(("read",), ("dram",) * 3, MIB, (0,), tuple(range(1, 30))),
    ],
    ids=lambda plan: type(plan).__name__,
)
def test_a_grid_shrinks_to_a_few_points_and_stops(plan: Plan[Any]) -> None:
    sizes = shrink(plan)
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] <= 10


def test_a_kernel_whose_loop_disappeared_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Vanished:
        def __init__(self, *_: object) -> None:
            pass

        def repeat(self, _kernel: str, _team: list[int]) -> dict[str, object]:
            return {"seconds": 1e-9, "counted_bytes": 57_000, "members": []}

        def worst_error(self) -> float:
            return 0.0

    monkeypatch.setattr(arrays, "ArrayBench", Vanished)
    with pytest.raises(MachineError, match="no processor can"):
        ArrayPlan(("read",), ("dram",) * 3, MIB, (0,), (1,)).epoch(1)


def test_ceilings_let_the_fastest_through_and_no_more() -> None:
    assert ceiling.check_rate(900e9, 1, "x") == 900e9
    assert ceiling.check_latency(0.6, 1, "x") == 0.6
    with pytest.raises(MachineError):
        ceiling.check_latency(0.1, 1, "x")
    assert ceiling.check_latency(0.1, 8, "x") == 0.1


def test_page_sizes_are_distinguished_if_the_tier_leaves_the_choice() -> None:
    assert page_variants("dram") == ["dram,pages=thp", "dram,pages=4k"]
    assert page_variants("dram,pages=4k") == ["dram,pages=4k"]
    assert page_variants("shm:") == ["shm:"]


def test_strides_show_devices_that_take_turns() -> None:
    from nearfar.stats import median

    flat = {256 << i: median([10.0 + j / 10 for j in range(6)]) for i in range(8)}
    assert access._interleave(flat) is None
    dip = {**flat, 4096: median([4.0 + j / 10 for j in range(6)])}
    assert access._interleave(dip) == 4096


def test_msync_is_probed_on_files_and_flushes_elsewhere() -> None:
    assert {p.how for p in persistence.points_for("file:.")} == {"msync"}
    assert "ntstore" in {p.how for p in persistence.points_for("shm:")}
