"""``nearfar advise``: from a program to a placement that holds, and clear words where it cannot."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from fixed_inputs import program_takes
from hmalloc_build import compile_c
from nearfar.place.choosing import choose
from nearfar.place.costing import Assumed, Coster
from nearfar.place.knapsack import max_bytes
from nearfar.place.memory_costs import Core, Memory, PageWalk
from nearfar.place.policies import POLICIES, evaluate_policies
from nearfar.place.traced import BLOCK_RECORDS, ProgramTrace, read_trace
from small_host import write_small_host
from tracing import needs_emulator

pytestmark = needs_emulator

NEAR = Memory("near", 100, 90, 110, 2, 2, PageWalk(), 12)
FAR = Memory("far", 400, 360, 440, 8, 12, PageWalk(), 12)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(
        tmp_path_factory.mktemp("advise"), "three_sites", flags=["-fno-omit-frame-pointer"]
    )


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_host(tmp_path_factory.mktemp("host") / "small.toml")


def advice(run_nearfar: RunNearfar, host: Path, *program: str, more: tuple[str, ...] = ()) -> Any:
    done = run_nearfar(
        "advise",
        "--emulate",
        "--near",
        "ddr4",
        "--host",
        str(host),
        *more,
        "--json",
        "-",
        "--",
        *program,
        prepare=program_takes(0.02),
    )
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_chased_table_stays_near_and_the_plan_holds(
    program: Path, host: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    found = advice(
        run_nearfar,
        host,
        str(program),
        "20000",
        "200000",
        more=("--near-budget", "2MiB", "--far", "cxl-asic", "--far", "optane-100"),
    )
    table = max(found["sites"], key=lambda site: site["stall_share"])
    assert table["verdict"] == "near"
    assert table["size_bytes"] == 20000 * 64
    assert table["dependent_share"] > 0.5
    assert {s["kind"] for s in found["sites"]} >= {"heap", "stack", "statics"}
    assert found["near_bytes"] <= 2 << 20
    assert 1.0 <= found["slowdown_plan"] < found["slowdown_all_far"]
    assert [far["far"] for far in found["fars"]] == ["cxl-asic", "optane-100"]
    slow = [point["slowdown"] for point in found["curve"]]
    assert slow == sorted(slow, reverse=True)
    policies = {each["policy"]: each for each in found["policies"]}
    assert set(policies) == set(POLICIES)
    assert all(1.0 <= p["slowdown"] <= 1.2 * found["slowdown_all_far"] for p in policies.values())
    assert found["slowdown_plan"] <= 1.02 * policies["first-touch"]["slowdown"]
    assert found["lacking"] == [
        "no energy: no figures of it for ddr4 and cxl-asic",
        "no wear: cxl-asic has no endurance_writes",
        "no price: cxl-asic has no price_per_gib",
    ]
    # another input, other addresses
    done = run_nearfar(
        "run",
        "--plan",
        found["plan"],
        "--tier",
        "far=dram",
        "--check",
        "--json",
        "-",
        "--",
        str(program),
        "26000",
        "250000",
    )
    check = json.loads(done.stdout)["check"]
    assert check["matched_share"] >= 0.95
    assert check["matched_traffic_share"] >= 0.95
    assert check["near_traffic_share"] > 0.5
    assert done.code == 0, done.stderr
    # a table that the caches hold: its share of the bytes is as promised, of the traffic not
    done = run_nearfar(
        "run",
        "--plan",
        found["plan"],
        "--tier",
        "far=dram",
        "--check",
        "--",
        str(program),
        "3000",
        "0",
    )
    assert done.code == 1
    assert "of the heap's traffic instead of" in " ".join(done.stderr.split())
    report = tmp_path / "nearfar-runs"
    record = next(report.glob("*-advise"))
    done = run_nearfar("report", str(record))
    assert done.code == 0, done.stderr
    assert "Advice for three_sites" in (record / "report.html").read_text()


@pytest.fixture(scope="module")
def traced(program: Path, host: Path, tmp_path_factory: pytest.TempPathFactory) -> ProgramTrace:
    from nearfar.profiles import load_host
    from nearfar.tracing.caches import caches_of
    from nearfar.tracing.recording import record

    file = tmp_path_factory.mktemp("traced") / "t"
    caches = caches_of(load_host(host), {})
    record(
        [str(program), "8000", "80000"],
        file,
        caches,
        host="small",
        after=caches.last,
        prefetch=True,
        aside=True,
    )
    return read_trace(file)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
def test_the_plan_is_within_two_percent_of_the_best_placement(
    traced: ProgramTrace, share: float
) -> None:
    coster = Coster(traced, NEAR, Core(256, 12))
    heap = [site.number for site in traced.movable()]
    budget = int(share * max_bytes(frozenset(heap), traced.sizes))
    found = choose(traced, coster, FAR, budget).best_within(budget)
    kept = [
        frozenset(near)
        for n in range(len(heap) + 1)
        for near in combinations(heap, n)
        if max_bytes(frozenset(near), traced.sizes) <= budget
    ]
    assert len(kept) > 2
    far = [[n for n in heap if n not in near] for near in kept]
    best = min(cost.time_ns for cost in coster.costs(FAR, far))
    assert found.cost.time_ns <= 1.02 * best


def test_a_run_in_windows_is_judged_as_the_whole_run_is(
    program: Path, host: Path, tmp_path: Path
) -> None:
    """Half a million records, and windows of a quarter of them, against all of them."""
    from nearfar.profiles import load_host
    from nearfar.tracing.caches import caches_of
    from nearfar.tracing.recording import record

    caches = caches_of(load_host(host), {})
    judged = []
    for most in (0, 2 * BLOCK_RECORDS):
        file = tmp_path / f"t{most}"
        done = record(
            [str(program), "20000", "600000"],
            file,
            caches,
            host="small",
            after=caches.last,
            prefetch=True,
            alone=True,
            max_records=most,
        )
        traced = read_trace(file, done.collected)
        coster = Coster(traced, NEAR, Core(256, 12))
        coster.calibrate(0.02, 0.02)
        budget = traced.movable_peak_bytes // 2
        found = choose(traced, coster, FAR, budget)
        policies = evaluate_policies(traced, coster, FAR, budget, 0.02)
        judged.append((traced, coster, found, found.best_within(budget), policies))
    (whole, coster, all_of, plan, policies), (part, parts, some, its_plan, its_policies) = judged
    assert coster.every == 1 < parts.every
    assert part.records == pytest.approx(whole.records, rel=0.01)
    assert part.movable_peak_bytes == pytest.approx(whole.movable_peak_bytes, rel=0.05)
    assert part.touched.fixed_pages == whole.touched.fixed_pages
    assert len(part.touches) == part.records
    chains = [{t.sites[n].frames for n in p.near} for t, p in ((whole, plan), (part, its_plan))]
    assert chains[0] == chains[1] != set()
    for cost, its_cost in (
        (all_of.all_far, some.all_far),
        (all_of.movable_far, some.movable_far),
        (plan.cost, its_plan.cost),
    ):
        assert some.slowdown(its_cost) == pytest.approx(all_of.slowdown(cost), rel=0.05)
    for policy, its in zip(policies, its_policies, strict=True):
        ratio = policy.time_ns / all_of.all_near.time_ns
        near = 0.3 if policy.moved_pages else 0.1  # moves come in bursts
        assert its.time_ns / some.all_near.time_ns == pytest.approx(ratio, rel=near), its.policy


def test_the_curve_goes_from_no_near_memory_to_all_of_the_heap(traced: ProgramTrace) -> None:
    coster = Coster(traced, NEAR, Core(256, 12))
    found = choose(traced, coster, FAR, None)
    assert found.points[0].near_bytes == 0
    assert found.points[-1].budget == traced.movable_peak_bytes
    assert found.slowdown(found.points[-1].cost) == pytest.approx(1.0)
    slowdowns = [found.slowdown(point.cost) for point in found.points]
    assert slowdowns == sorted(slowdowns, reverse=True)


def test_a_memory_that_is_no_faster_makes_no_program_faster() -> None:
    from nearfar.place.memory_costs import memory_of, why_faster
    from nearfar.profiles import load_profile

    slow_here = Memory("near", 170, 160, 180, 9, 9, PageWalk(60, 60), 12)
    far = memory_of(load_profile("cxl-asic"), slow_here)
    assert (far.line, far.write_line) == (9, 9)  # not the 3.6 ns of all threads elsewhere
    slower_here = Memory("near", 324, 300, 350, 9, 9, PageWalk(60, 60), 12)
    sooner = memory_of(load_profile("cxl-asic"), slower_here)
    assert sooner.line < 9
    assert why_faster(slower_here, sooner) == "it answers in 250 ns, near memory in 324 ns"


def test_programs_that_cannot_be_advised_on(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    (tmp_path / "folder").mkdir()
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/interpreter\n")
    orphan.chmod(0o755)
    for program, words in (
        ("./plain", "is not executable"),
        ("./none", "no program ./none"),
        ("./folder", "is a folder"),
        ("./orphan", "names does not exist"),
    ):
        done = run_nearfar("advise", "--emulate", "--", program)
        assert (done.code, words in done.stderr) == (2, True), done.stderr
    done = run_nearfar("advise", "--emulate", "--near", "ddr4", "--", "sh", "-c", "kill -11 $$")
    assert done.code == 2
    assert "killed by signal 11" in done.stderr
    done = run_nearfar("advise", "--emulate", "--far", "nothing", "--", "true")
    assert done.code == 2
    assert "neither a device profile nor a tier" in done.stderr


C_PROGRAMS = {
    "forks": "#include <stdlib.h>\n#include <unistd.h>\n#include <sys/wait.h>\nint main(void) {"
    " volatile char* p = malloc(1 << 22); fork();"
    " for (int i = 0; i < 1 << 22; i += 64) p[i] = 1; wait(NULL); return 0; }",
    "nothing": "static volatile char a[1 << 22]; int main(void) {"
    " for (int i = 0; i < 1 << 22; i += 64) a[i] = 1; return 0; }",
}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("forks", "2 processes were traced as one"),
        ("nothing", "no memory that a plan can move"),
    ],
)
def test_programs_of_which_something_is_to_be_said(
    name: str, words: str, host: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    source = tmp_path / f"{name}.c"
    source.write_text(C_PROGRAMS[name])
    subprocess.run(["cc", "-O1", "-o", str(tmp_path / name), str(source)], check=True)
    found = advice(run_nearfar, host, f"./{name}")
    assert found["unseen_share"] == 0  # what forked children do is traced
    assert any(words in warning for warning in found["warnings"]), found["warnings"]
    assert ("plan" in found) == (name != "nothing")


def test_a_script_is_traced_as_its_interpreter(
    host: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nx=0\nwhile [ $x -lt 300 ]; do x=$((x+1)); done\n")
    script.chmod(0o755)
    found = advice(run_nearfar, host, "./script")
    assert found["sites"]


CHASE = """#include <stdio.h>
#include <stdlib.h>
int main(void) {
  size_t n = 1 << 17, at = 0;
  size_t *index = malloc(n * sizeof *index);
  for (size_t i = 0; i < n; ++i) index[i] = (i * 2654435761u + 12345) % n;
  for (size_t i = 0; i < 8 * n; ++i) at = (index[at] * 40503u + i) % n;
  printf("%zu\\n", at);
  return 0;
}
"""


def test_waiting_that_the_trace_does_not_see_is_deduced_from_the_run_s_time(
    host: Path, tmp_path: Path
) -> None:
    """A chase by computed addresses: each miss waits for the one before, and no value shows it."""
    from nearfar.profiles import load_host
    from nearfar.tracing.caches import caches_of
    from nearfar.tracing.recording import record

    (tmp_path / "chase.c").write_text(CHASE)
    program = tmp_path / "chase"
    subprocess.run(["cc", "-O2", "-o", str(program), f"{program}.c"], check=True)
    caches = caches_of(load_host(host), {})
    file = tmp_path / "t"
    record([str(program)], file, caches, host="small", after=caches.last, prefetch=True, alone=True)
    traced = read_trace(file)
    index = max(traced.movable(), key=lambda site: site.reads).number
    coster = Coster(traced, NEAR, Core(256, 12))
    run_s = traced.sites[index].reads * 110e-9  # a latency a miss, and some work
    coster.calibrate(run_s, run_s)
    assert coster.work.chained > 0.8
    works = [coster.work, coster.other_works[-1]]  # the last: instructions take as long as it takes
    slowdowns = [
        far.time_ns / near.time_ns
        for near, far in coster.costs_under(
            FAR, [[], [index]], [Assumed(coster.core, FAR.latency, work) for work in works]
        )
    ]
    assert slowdowns[0] > 2.5  # 400 ns over 100 ns, and some work
    assert slowdowns[1] < 1.5
    for unexplained_ns in (0, 50, 1000):  # slower nearer caches, say: they hide no miss
        run_s = traced.sites[index].reads * (120 + unexplained_ns) * 1e-9
        coster.calibrate(run_s, run_s)
        assert coster.work.chained == pytest.approx(1, abs=0.05)
        cost, far = coster.costs(FAR, [[], [index]])
        added_ns = (FAR.latency - NEAR.latency) * cost.sites[index].dependent
        assert far.time_ns - cost.time_ns == pytest.approx(added_ns, rel=0.05)
        assert far.sites[index].added_ns(cost.sites[index]) == pytest.approx(added_ns, rel=0.05)
    fast = replace(NEAR, name="fast", latency=50, low=45, high=55)
    other = Coster(traced, fast, Core(256, 12), NEAR)  # the run was on NEAR, not on fast memory
    other.calibrate(run_s, run_s)
    assert other.work == coster.work
    dependent = cost.sites[index].dependent
    saved_ns = (NEAR.latency - fast.latency) * dependent
    assert cost.time_ns - other.near_time_ns() == pytest.approx(saved_ns, rel=0.05)
    near, far = other.costs(FAR, [[], [index]])
    assert far.time_ns - near.time_ns == pytest.approx(added_ns + saved_ns, rel=0.05)
