"""``nearfar run --compare``: a program with its heap in several places, in turns."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.measure.progress import silent
from nearfar.place import preload
from nearfar.place.native_run import TimedRun
from nearfar.records.variants import VariantsResult
from nearfar.report.terminal.variants import variants as table
from nearfar.workflows import variants

PROMISE = (
    "hmalloc-plan 1\n# promise 1 heap allocated_bytes=1 peak_bytes=1 near_bytes=0 slowdown=1.1 "
    "slowdown_all_far=1.3\nrule far\n"
)
NODES = {"near": "numa:0", "far": "numa:1"}


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs take 1 s near, 1.5 s far and 1.2 s with a plan; returns where each run had its heap."""
    seen: list[str] = []

    def run_once(
        _program: Sequence[str], _limit_s: float, environment: Mapping[str, str] | None, _stdin: str
    ) -> TimedRun:
        assert environment is not None
        plan = Path(environment.get("NEARFAR_HMALLOC_PLAN", "")).stem
        where = plan.removeprefix("all-") or environment["NEARFAR_HMALLOC_DEFAULT"]
        seen.append(where)
        drift = 1 + len(seen) // 3  # the machine slows down from round to round
        cpu_s = {"near": 1.0, "far": 1.5, "program": 1.2}[where] * drift
        return TimedRun(cpu_s, cpu_s, cpu_s * 0.75, cpu_s * 0.25, 1 << 20, 0, stopped=False)

    monkeypatch.setattr(variants, "run_once", run_once)
    monkeypatch.setattr(preload, "check", lambda _environment: None)
    for name in ("NEARFAR_HMALLOC_DEFAULT", "NEARFAR_HMALLOC_PLAN"):
        monkeypatch.delenv(name, raising=False)
    return seen


def compared(names: list[str], tiers: Mapping[str, str], runs: int = 6) -> VariantsResult:
    with silent() as progress:
        return variants.compare_variants(["true"], names, tiers, progress, runs=runs)


def shown(found: VariantsResult) -> str:
    console = Console(file=StringIO(), width=1000)
    console.print(table(found))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_pages_of_other_sizes_than_predicted_are_noted(turns: list[str], tmp_path: Path) -> None:
    plan = tmp_path / "program.plan"
    promised = PROMISE.replace(
        " slowdown=", " near_page_bytes=2097152 far_page_bytes=4096 slowdown="
    )
    plan.write_text(promised)
    small = {name: f"{tier},pages=4k" for name, tier in NODES.items()}
    found = compared(["all-near", "all-far", str(plan)], small)
    assert turns
    assert found.predicted_page_bytes == {"near": 2 << 20, "far": 4096}
    assert found.page_bytes == {"near": 4096, "far": 4096}
    said = shown(found)
    assert "the predictions are for 2 MiB pages (near), 4 KiB pages (far), the runs had" in said
    assert "User alone" not in said
    other = compared(["all-near", "all-far"], {**small, "far": "numa:1,pages=thp"})
    assert re.search(r"the memories have 4 KiB pages .* User alone: all-far \d", shown(other))


def test_ratios_are_of_runs_of_the_same_round(turns: list[str], tmp_path: Path) -> None:
    plan = tmp_path / "program.plan"
    plan.write_text(PROMISE)
    found = compared(["all-near", "all-far", str(plan)], NODES, runs=8)
    assert len(turns) == 24
    assert all(set(turns[i : i + 3]) == {"near", "far", "program"} for i in range(0, 24, 3))
    near, far, planned = found.variants
    assert near.slowdown is None
    assert far.slowdown is not None
    assert 1.0 < far.slowdown < 2.0
    base = near.run_times
    assert base.min_s == 1.0
    assert base.max_s >= 8.0
    assert base.user_s == 3 * base.system_s
    assert base.mean_s == pytest.approx(base.user_s + base.system_s)
    assert base.stddev_s is not None
    assert far.intervals["slowdown"][0] <= far.slowdown <= far.intervals["slowdown"][1]
    assert (far.predicted_slowdown, planned.predicted_slowdown) == (1.3, 1.1)
    assert near.predicted_slowdown is None


@pytest.mark.parametrize(
    ("names", "tiers"),
    [(["all-near"], {"far": "shm:"}), (["all-far"], NODES)],
    ids=["emulated", "not against all near"],
)
def test_a_promise_is_not_put_next_to_what_it_is_not_about(
    turns: list[str], tmp_path: Path, names: list[str], tiers: dict[str, str]
) -> None:
    plan = tmp_path / "program.plan"
    plan.write_text(PROMISE)
    found = compared([*names, str(plan)], tiers)
    assert turns
    assert all(row.predicted_slowdown is None for row in found.variants)
    origin = found.variants[1].provenance["cpu_time_s"].origin
    assert origin == ("emulated" if tiers["far"] == "shm:" else "measured")


#: Fills private and shared memory, and prints where all of its memory is.
POLICIES = """
import mmap
held = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
shared = mmap.mmap(-1, 4 << 20)
for each in (held, shared):
    each.write(b"x" * (4 << 20))
print(open("/proc/self/numa_maps").read())
"""


@pytest.mark.parametrize("variant", ["all-near", "all-far"])
def test_all_memory_is_placed_and_not_the_heap_alone(tmp_path: Path, variant: str) -> None:
    from nearfar.place.whole_program import whole_program_on

    tier = variant.removeprefix("all-")
    placement = whole_program_on(tier, {"near": "numa:0", "far": "numa:0"}, tmp_path)
    environment = preload.environment(placement, None)
    preload.check(environment)
    maps = subprocess.run(
        [sys.executable, "-c", POLICIES],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    bound = [line for line in maps.splitlines() if re.search(" (bind|prefer[^ ]*):0 ", line)]
    assert any("anon=1024" in line for line in bound), maps
    assert any("file=/dev/zero" in line for line in bound), maps
    assert any("file=" in line and "python" in line for line in bound), maps


def test_memory_that_is_not_of_nodes_holds_the_heap_alone(tmp_path: Path) -> None:
    from nearfar.place.whole_program import whole_program_on

    found = whole_program_on("far", {"near": "dram", "far": "shm:"}, tmp_path)
    assert found.plan is None
    assert found.heap() == "far"


def test_a_real_program_is_compared(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("\n".join(map(str, range(1000000, 0, -1))))
    done = run_nearfar(
        "run", "--compare", "all-near,all-far", "--tier", "near=dram,pages=thp", "--tier",
        "far=dram,pages=4k", "--runs", "2", "--json", "times.json", "--", "sort", "-n", "numbers",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    assert "CPU time against all-near: all-far" in done.stdout
    found = json.loads((tmp_path / "times.json").read_text())
    assert [row["variant"] for row in found["variants"]] == ["all-near", "all-far"]
    assert all(row["cpu_time_s"] > 0 for row in found["variants"])
    assert found["variants"][1]["provenance"]["slowdown"]["samples"] == 2


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--compare", "all-near", "--tier", "far=shm:"), "does not name two or more"),
        (("--compare", "all-near,all-near", "--tier", "far=shm:"), "does not name two or more"),
        (("--compare", "a.plan,./a.plan", "--tier", "far=shm:"), "does not name two or more"),
        (("--compare", "all-near,all-far"), "no far memory is named"),
        (("--compare", "all-near,no.plan", "--tier", "far=shm:"), "no such variant: no.plan"),
        (("--compare", "all-near,all-far", "--tier", "far=what"), "what"),
        (("--compare", "all-near,all-far", "--stats"), "--stats has no effect with --compare"),
        (("--compare", "all-near,all-far", "--no-traffic"), "--no-traffic has no effect with"),
        (("--runs", "3", "--tier", "far=shm:"), "--runs has no effect without --compare"),
    ],
)
def test_wrong_variants_are_refused(
    run_nearfar: RunNearfar, flags: tuple[str, ...], why: str
) -> None:
    done = run_nearfar("run", *flags, "--", "true")
    assert (done.code, why in " ".join(done.stderr.split())) == (2, True), done.stderr


def test_runs_that_are_mostly_their_start_are_not_compared(run_nearfar: RunNearfar) -> None:
    flags = ("--compare", "all-near,all-far", "--tier", "far=shm:", "--runs", "2")
    done = run_nearfar("run", *flags, "--", "true")
    assert done.code == 0, done.stderr
    assert "Too short to compare" in done.stdout


def test_times_of_a_failed_program_are_not_compared(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "run", "--compare", "all-near,all-far", "--tier", "far=shm:", "--", "false"
    )  # fmt: skip
    assert done.code == 2
    assert "false failed with exit code 1: its times are not compared" in done.stderr


def test_a_static_program_is_refused() -> None:
    static = next((p for p in ("/bin/busybox", "/sbin/ldconfig") if Path(p).exists()), None)
    if static is None:
        pytest.skip("no static program here")
    with (
        silent() as progress,
        pytest.raises(BadInputError, match="cannot be placed before it runs"),
    ):
        variants.compare_variants([static], ["all-near", "all-far"], NODES, progress)


def test_the_table_fits_a_terminal(turns: list[str]) -> None:
    from rich.console import Console

    console = Console(width=80, file=StringIO(), record=True)
    console.print(table(compared(["all-near", "all-far"], {"far": "shm:"})))
    text = console.export_text()
    assert turns
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "ratios to all-near" in text
    assert "Mean ± σ" in text
    assert "Min … max" in text


@pytest.mark.parametrize("runs", [1, 2, 6])
def test_few_runs_have_no_interval(turns: list[str], runs: int) -> None:
    from rich.console import Console

    console = Console(width=100, file=StringIO(), record=True)
    console.print(table(compared(["all-near", "all-far"], {"far": "shm:"}, runs)))
    text = " ".join(console.export_text().split())
    assert turns
    assert ("too few runs for an interval: --runs 6" in text) is (runs < 6)
    assert ("95 % interval" in text) is (runs == 6)
    assert ("±" in text) is (runs == 6)


@pytest.mark.parametrize(("far", "is_dram"), [("shm:", True), ("numa:1", False)])
def test_shared_memory_is_said_to_be_dram(turns: list[str], far: str, *, is_dram: bool) -> None:
    from rich.console import Console

    console = Console(width=100, file=StringIO(), record=True)
    console.print(table(compared(["all-near", "all-far"], {"near": "numa:0", "far": far})))
    assert turns
    text = " ".join(console.export_text().split())
    assert text.count("these are times on DRAM, not on far memory") == is_dram
