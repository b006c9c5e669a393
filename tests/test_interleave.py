"""``nearfar predict interleave``: near fractions of sites under their own load."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
from itertools import pairwise, product
from pathlib import Path

import pytest
from rich.console import Console

import factories
from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.measure.profile import profile_of
from nearfar.model.interleave import (
    STEPS,
    Load,
    LoadedMemory,
    SiteLoad,
    loaded_memory_of,
    parse_background,
    predict,
    with_loads,
)
from nearfar.place.fractions import weights_of
from nearfar.place.interleaved_plan import PlannedSite
from nearfar.place.promise import read_promise
from nearfar.plan_files.reader import read_plan
from nearfar.profiles import load_profile
from nearfar.profiles.loaded_curves import Loaded, LoadedCurves, curves_of, saturates
from nearfar.records.depth import LoadedResult
from nearfar.records.profile import Figure, Profile
from nearfar.records.run import Sections
from nearfar.report.html.sections import loaded
from nearfar.report.terminal.predictions import interleave

ROOT = Path(__file__).parent.parent
GB = 1e9
HEAD = "site,size_bytes,read_bytes,write_bytes,near_stall_s\n"


def memory(name: str, idle_ns: float, peak: float, **more: object) -> LoadedMemory:
    """Latency doubles towards the peak."""
    curve = tuple(Loaded(peak * u, idle_ns * (1 + u**3)) for u in (0, 0.25, 0.5, 0.75, 0.9, 1))
    return LoadedMemory(name, LoadedCurves({1.0: curve}, ()), **more)  # type: ignore[arg-type]


def latency(side: LoadedMemory, rate: float) -> float:
    """Linear interpolation, written without the native layer."""
    points = side.curves.curves[1.0]
    if rate > points[-1].bandwidth:
        return float("inf")
    for low, high in pairwise(points):
        if rate <= high.bandwidth:
            part = (rate - low.bandwidth) / (high.bandwidth - low.bandwidth)
            return low.latency + part * (high.latency - low.latency)
    return points[-1].latency


def time_by_bisection(
    sites: list[SiteLoad], base_s: float, near: LoadedMemory, far: LoadedMemory, steps: list[int]
) -> float:
    parts = [step / STEPS for step in steps]
    near_bytes = sum(p * s.read_bytes for p, s in zip(parts, sites, strict=True))
    far_bytes = sum((1 - p) * s.read_bytes for p, s in zip(parts, sites, strict=True))
    near_s = sum(p * s.near_stall_s for p, s in zip(parts, sites, strict=True))
    far_s = sum((1 - p) * s.far_stall_s for p, s in zip(parts, sites, strict=True))
    low, high = base_s, 1e6
    for _ in range(200):
        tried = (low + high) / 2
        near_ns = latency(near, near_bytes / tried + near.background.reads)
        far_ns = latency(far, far_bytes / tried + far.background.reads)
        needed = float("inf")
        if max(near_ns, far_ns) < float("inf"):
            needed = base_s + near_s * near_ns / near.idle_ns + far_s * far_ns / far.idle_ns
        low, high = (tried, high) if needed > tried else (low, tried)
    return high


def test_the_answer_is_the_least_time_of_an_independent_fixed_point() -> None:
    draw = random.Random(7)
    for _ in range(20):
        near = memory("n", 100, draw.uniform(30, 100) * GB, background=Load(draw.uniform(0, 20e9)))
        far = memory("f", draw.uniform(150, 400), draw.uniform(10, 40) * GB)
        sites = []
        for name in "ab":
            stall = draw.uniform(0, 2)
            read = draw.uniform(0, 200) * GB
            sites.append(SiteLoad(name, 1, read, 0, stall, stall * draw.uniform(1, 4)))
        best = min(
            time_by_bisection(sites, 1, near, far, list(steps))
            for steps in product(range(STEPS + 1), repeat=2)
        )
        result = predict(sites, 1, near, far)
        assert result.time_s == pytest.approx(best, rel=1e-9)
        assert result.exact
        assert result.uniform_time_s is not None
        assert result.whole_sites_time_s is not None
        assert result.time_s <= min(result.uniform_time_s, result.whole_sites_time_s) * (1 + 1e-9)


def test_a_background_load_moves_streams_away() -> None:
    stream = [SiteLoad("stream", 1, 100 * GB, 0, 0, 0)]
    sides = memory("near", 100, 30 * GB), memory("far", 200, 10 * GB)
    alone = predict(stream, 0.1, *sides)
    assert alone.sites[0].near_share == 6 / 8
    loaded = predict(stream, 0.1, *with_loads(*sides, ["near=20GB/s"]))
    assert loaded.sites[0].near_share == 4 / 8
    assert loaded.near.background_bytes_per_s == 20 * GB
    assert loaded.near.bandwidth_bytes_per_s == pytest.approx(30 * GB)


def test_an_open_curve_is_marked_where_it_is_used_to_its_end() -> None:
    rising = tuple(Loaded(i * GB, 100 + i) for i in (0, 10, 20, 30))
    assert not saturates(rising)
    near = LoadedMemory("open", LoadedCurves({1.0: rising}, (1.0,)))
    result = predict([SiteLoad("s", 1, 1000 * GB, 0, 0, 0)], 1, near, memory("far", 200, 10 * GB))
    assert result.near.at_open_end
    assert not result.far.at_open_end
    assert {"time_s", "all_near_time_s"} <= set(result.upper_bounds)
    assert "all_far_time_s" not in result.upper_bounds
    assert any("open is used to the end of a curve" in warning for warning in result.warnings)
    few = predict([SiteLoad("s", 1, 1 * GB, 0, 0, 0)], 1, near, memory("far", 200, 10 * GB))
    assert not few.near.at_open_end
    assert few.upper_bounds == []
    written = predict([SiteLoad("s", 1, 1, GB, 0, 0)], 1, near, memory("far", 200, 10 * GB))
    assert any("was not measured with 0% reads" in warning for warning in written.warnings)


def test_a_placement_that_is_not_the_best_is_marked_too() -> None:
    rising = tuple(Loaded(i * GB, 200 + i) for i in (0, 5, 10))
    far = LoadedMemory("open", LoadedCurves({1.0: rising}, (1.0,)))
    result = predict([SiteLoad("s", 1, 1000 * GB, 0, 0, 0)], 1, memory("near", 100, 300 * GB), far)
    assert not result.far.at_open_end
    assert not result.near.at_open_end
    assert "all_far_time_s" in result.upper_bounds
    assert "time_s" not in result.upper_bounds
    console = Console(width=100, file=io.StringIO())
    console.print(interleave(result))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"all far +≤ ", text)
    assert "≤: at the end of a curve that is not saturated" in text
    assert not re.search(r"all near +≤ ", text)


def test_curves_come_from_profiles_and_their_ends_are_judged() -> None:
    curves = curves_of(load_profile("ddr5"))
    assert set(curves.curves) == {0.5, 1.0}
    assert curves.open_shares == ()
    assert curves.warnings == ("the curves of ddr5 have only their ends",)
    flat = curves_of(load_profile("cxl-asic"))
    assert {p.latency for curve in flat.curves.values() for p in curve} == {250}
    assert "has no loaded latencies" in flat.warnings[0]
    assert loaded_memory_of(load_profile("ddr5")).idle_ns == 111


def test_a_loaded_figure_over_other_coordinates_is_refused() -> None:
    figure = Figure(unit="ns", x=["threads"], points=[[1, 90]], source="s", confidence="A")
    profile = Profile(
        schema_version=1,
        name="odd",
        title="odd",
        description="odd",
        sources={"s": "s"},
        figures={"read_latency_by_load_ns": figure},
    )
    with pytest.raises(BadInputError, match="must be over read_share and bandwidth_bytes_per_s"):
        curves_of(profile)


@pytest.mark.parametrize(
    "texts",
    [["near"], ["near=5"], ["up=5GB/s"], ["near=5GB/s@120%"], ["near=-1GB/s"], [""]],
)
def test_a_background_load_has_a_side_and_a_rate(texts: list[str]) -> None:
    with pytest.raises(BadInputError, match="not a background load"):
        parse_background(texts)


def test_background_loads_have_reads_and_writes() -> None:
    found = parse_background(["near=40GB/s", "far=5GB/s@60%"])
    assert found["near"] == Load(40 * GB, 0)
    assert (found["far"].reads, found["far"].writes) == pytest.approx((3 * GB, 2 * GB))
    with pytest.raises(BadInputError, match="two background loads"):
        parse_background(["near=1GB/s", "near=2GB/s"])


def test_the_verb_reads_a_table_and_answers(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(HEAD + "index,8e9,2e10,0,4\ncolumns,4e10,2.5e12,3e11,2\n")
    flags = ("--sites", "s.csv", "--near", "ddr5", "--far", "cxl-asic", "--compute", "8s")
    done = run_nearfar("predict", "interleave", *flags, "--near-budget", "32GiB", "--json", "-")
    assert done.code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert "all_near_time_s" not in answer  # 48 GB do not fit
    assert sum(s["near_share"] * s["size_bytes"] for s in answer["sites"]) <= 32 << 30
    assert answer["exact"]
    assert answer["provenance"]["time_s"]["origin"] == "modelled"
    shown = run_nearfar("predict", "interleave", *flags)
    assert "all near" in shown.stdout
    assert "cxl-asic has no loaded latencies" in shown.stderr


@pytest.mark.parametrize(
    ("table", "flags", "why"),
    [
        (HEAD, (), "has no rows"),
        ("site,size_bytes\na,1\n", (), "lacks the column read_bytes"),
        (HEAD + "a,-1,0,0,0\n", (), "column size_bytes: -1 is negative"),
        (HEAD + ",1,0,0,0\n", (), "column site: nothing is there"),
        (HEAD + "a,1,0,0,0\n", ("--background", "near=900GB/s"), "leaves no bandwidth in near"),
        (HEAD + "a,1,0,0,0\n", ("--background", "n"), "'n' is not a background load"),
        (HEAD + "a,1,0,0,0\n", ("--far", "dram-snu"), "has no figure read_latency_ns"),
    ],
)
def test_bad_input_is_one_clear_error(
    run_nearfar: RunNearfar, tmp_path: Path, table: str, flags: tuple[str, ...], why: str
) -> None:
    (tmp_path / "s.csv").write_text(table)
    fixed = ("--sites", "s.csv", "--near", "ddr5", "--far", "cxl-asic", "--compute", "1s")
    done = run_nearfar("predict", "interleave", *fixed, *flags)
    assert done.code == 2
    assert why in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_the_solver_equals_exhaustive_search_on_all_cases() -> None:
    subprocess.run(["cmake", "--preset", "test"], cwd=ROOT, check=True, capture_output=True)
    build = ["cmake", "--build", "--preset", "test", "--target", "interleave_test"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    program = ROOT / "build" / "editable" / "native" / "interleave_test"
    done = subprocess.run(
        [program, "-s"],
        env=dict(os.environ, NEARFAR_TEST_LONG="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def _probed(rising: float) -> tuple[LoadedResult, Profile]:
    """A run of `probe` whose latency grows by this factor, and its profile."""
    points = [
        factories.loaded()
        .points[0]
        .model_copy(
            update={
                "offered_bytes_per_s": rate * GB,
                "bandwidth_bytes_per_s": rate * GB,
                "latency_ns": 100 * (1 + (rising - 1) * (rate / 20) ** 8),
                "intervals": {},
            }
        )
        for rate in (1.0, 5.0, 10.0, 15.0, 18.0, 20.0)
    ]
    result = factories.loaded().model_copy(update={"points": points})
    run = factories.study(sections=Sections(loaded=result))
    return result, profile_of(run, "probed", "dram")


def test_a_probe_marks_curves_that_its_threads_did_not_saturate() -> None:
    result, profile = _probed(1.1)
    note = "not saturated at 100% reads"
    assert note in (profile.figure("read_latency_by_load_ns").note or "")
    assert curves_of(profile).open_shares == (1.0,)
    assert note in loaded.notes(result)[0]
    used = loaded_memory_of(profile)
    found = predict([SiteLoad("s", 1, 1000 * GB, 0, 0, 0)], 1, used, memory("far", 200, 20 * GB))
    assert found.near.at_open_end
    assert found.near.bandwidth_bytes_per_s == pytest.approx(20 * GB)
    result, profile = _probed(2.5)
    assert "not saturated" not in (profile.figure("read_latency_by_load_ns").note or "")
    assert curves_of(profile).open_shares == ()
    assert "not saturated" not in "".join(loaded.notes(result))


PLANNED = (
    "site,size_bytes,read_bytes,write_bytes,near_stall_s,rule\n"
    "index,8000,2e10,0,4,site=name:app+0x4a8\n"
    "columns,4e10,2.5e12,3e11,2,map=anonymous size=1GiB..\n"
    "log,1e10,0,5e10,0,size=4096..8192\n"
)


def test_the_answer_is_written_as_a_plan_with_weights(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "s.csv").write_text(PLANNED)
    flags = ("--sites", "s.csv", "--near", "ddr5", "--far", "cxl-asic", "--compute", "8s")
    done = run_nearfar("predict", "interleave", *flags, "--plan", "p.plan", "--nodes", "0:2")
    assert done.code == 0, done.stderr
    assert "plan: p.plan" in done.stderr
    text = (tmp_path / "p.plan").read_text()
    assert "tier near7far1 numa:0+2,weights=7:1\n" in text
    plan = read_plan(tmp_path / "p.plan")
    assert plan.tiers["far"] == "numa:2"
    assert [rule.tier for rule in plan.rules] == ["near", "near7far1", "far"]
    promise = read_promise(tmp_path / "p.plan")
    assert promise.heap.allocated_bytes == 8000 + 10_000_000_000
    assert [rule.at for rule in promise.rules] == ["index", "columns", "log"]


@pytest.mark.parametrize(
    ("table", "more", "why"),
    [
        (PLANNED.replace("map=anonymous", "map=odd"), (), "invalid condition 'map=odd'"),
        (PLANNED.replace("site=name:app+0x4a8", ""), (), "site index has no rule"),
        (PLANNED, ("--nodes", "0:0"), "--nodes 0:0 is not a pair of nodes"),
        (PLANNED, ("--nodes", "near"), "--nodes near is not a pair of nodes"),
    ],
)
def test_a_plan_that_cannot_be_read_is_not_written(
    run_nearfar: RunNearfar, tmp_path: Path, table: str, more: tuple[str, ...], why: str
) -> None:
    (tmp_path / "s.csv").write_text(table)
    flags = ("--sites", "s.csv", "--near", "ddr5", "--far", "cxl-asic", "--compute", "8s")
    done = run_nearfar("predict", "interleave", *flags, "--plan", "p.plan", *more)
    assert (done.code, why in " ".join(done.stderr.split())) == (2, True), done.stderr
    assert not (tmp_path / "p.plan").exists()


@pytest.mark.parametrize(
    ("parts", "tier", "weights"),
    [(0, "far", (0, 1)), (8, "near", (1, 0)), (4, "near1far1", (1, 1)), (6, "near3far1", (3, 1))],
)
def test_weights_are_in_lowest_terms(parts: int, tier: str, weights: tuple[int, int]) -> None:
    assert PlannedSite("s", "size=1..", parts, 1, 0, 0).tier() == tier
    assert weights_of(parts) == weights
