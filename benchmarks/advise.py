"""Predictions of `nearfar advise`, recorded first, against wall time measured afterwards.

    .venv/bin/python benchmarks/advise.py here        memories, and the programs all near (quiet!)
    .venv/bin/python benchmarks/advise.py predict     writes benchmarks/predictions/advise.json
    .venv/bin/python benchmarks/advise.py measure     the programs in both settings, and errors
    .venv/bin/python benchmarks/advise.py cost        how long `nearfar advise` itself takes

Setting (a): a copy loop on the other processor; far memory is DRAM as a chase finds it then. `hog`
is what advise says of that far memory; `shared` adds what the loop takes besides memory, as found
before with other work: of the last cache (a chase) and of the core (advise/core.c, which misses no
cache).
Setting (b): near is DRAM on huge pages, far the same on small ones; the heap alone is placed, all
near, all far and by the plan for half of the heap.
Programs: a quicksort, a hash map, sqlite3 filling and querying a table, a Python script (with
PYTHONMALLOC=malloc: its own arenas are mapped, and no plan moves mappings).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from host_now import host_now

from nearfar.place.advising import AdviceInputs, FarResult, advise
from nearfar.place.costing import Assumed, Coster
from nearfar.place.labels import labels_of
from nearfar.place.memory_costs import Memory, core_of, memory_of
from nearfar.place.native_run import run_natively
from nearfar.place.plan_writer import plan_text
from nearfar.place.preload import Placement, environment
from nearfar.place.promise import PlanPromise
from nearfar.place.traced import MAX_RECORDS, ProgramTrace, read_trace
from nearfar.place.uncertainty import slowdowns
from nearfar.profiles import load_host
from nearfar.records.profile import Profile
from nearfar.tracing.caches import Caches, caches_of
from nearfar.tracing.recording import record
from nearfar.workflows.memories import tier_profile

HERE = Path(__file__).parent
PREDICTIONS = HERE / "predictions" / "advise.json"
PLANS = HERE / "predictions"
BUILD = HERE.parent / "build" / "advise"
REPEATS = int(os.environ.get("REPEATS", "5"))
THP, SMALL = "dram,pages=thp", "dram,pages=4k"


@dataclass(frozen=True)
class Program:
    name: str
    command: list[str]


def programs() -> list[Program]:
    BUILD.mkdir(parents=True, exist_ok=True)
    top = HERE.parent  # not in the files: plans know programs by their build id, in any folder
    for source in (*(HERE / "advise").glob("*.c"), top / "tests" / "programs" / "sort.c"):
        subprocess.run(
            [
                "cc",
                "-O2",
                "-g",
                f"-ffile-prefix-map={top}=.",
                "-o",
                str(BUILD / source.stem),
                str(source),
            ],
            check=True,
            cwd=top,
        )
    table = str(HERE / "advise" / "table.sql")
    return [
        Program("sort", [str(BUILD / "sort"), "4000000"]),
        Program("map", [str(BUILD / "map"), "1000000", "3000000"]),
        Program("sqlite3", ["sqlite3", ":memory:", f".read {table}"]),
        Program("python", [sys.executable, str(HERE / "placement" / "words.py"), "60000"]),
    ]


@contextmanager
def hogged(cpu: int) -> Iterator[None]:
    hog = subprocess.Popen(["taskset", "-c", str(cpu), str(BUILD / "hog")])
    time.sleep(0.7)
    try:
        yield
    finally:
        hog.kill()
        hog.wait()


def trace(program: Program, caches: Caches, file: Path) -> ProgramTrace:
    done = record(
        program.command,
        file,
        caches,
        host="this",
        after=caches.last,
        prefetch=True,
        alone=True,
        max_records=MAX_RECORDS,
    )
    return read_trace(file, done.collected)


def half_plan(asked: AdviceInputs, found: FarResult, program: Program) -> Path:
    promise = PlanPromise(
        allocated_bytes=sum(s.allocated_bytes for s in asked.data.movable() if s.kind == "heap"),
        peak_bytes=asked.data.movable_peak_bytes,
        near_bytes=found.advice.near_bytes,
        near_budget_bytes=asked.budget,
        slowdown=found.advice.slowdown_plan,
        slowdown_all_far=found.advice.slowdown_all_far,
    )
    file = PLANS / f"advise-{program.name}.plan"
    file.write_text(
        plan_text(
            asked.data.sites,
            found.placing,
            found.choices.gains,
            promise,
            asked.labels.at,
            [Path(program.command[0]).name],
        )
    )
    return file


def weigh(
    traced: ProgramTrace,
    near: Profile,
    far: Profile,
    times: tuple[float, float],
    budget: int | None,
) -> tuple[Coster, AdviceInputs, FarResult]:
    coster = Coster(traced, memory_of(near), core_of(near))
    coster.calibrate(*times)
    asked = AdviceInputs(
        data=traced,
        coster=coster,
        variants=partial(slowdowns, coster),
        near=near,
        wall_s=times[1],
        cpu_s=times[1],
        budget=budget,
        labels=labels_of(traced.sites),
    )
    return coster, asked, advise(asked, memory_of(far, coster.near), far)


def here() -> None:
    cpu, other = sorted(os.sched_getaffinity(0))[:2]
    judged = programs()
    os.sched_setaffinity(0, {cpu})
    found: dict[str, Any] = {"native": {}, "thp": {}, "memories": {}}
    alone = host_now(cpu, ["dram"])
    found["last_cache_bytes"] = alone.scalar("l3_bytes")
    with hogged(other):
        hogs = host_now(cpu, ["dram"])
    found["last_cache_beside_hog_bytes"] = hogs.scalar("l3_bytes")
    core = Program("core", [str(BUILD / "core"), "100"])
    ratios = pairs(core, {"alone": (None, False), "hog": (None, True)}, other)["hog"]
    found["core_slowdown"] = median(ratios.wall)
    for program in judged:
        native = run_natively(program.command, 100)
        region = native.resident_bytes
        memories = {t: tier_profile(alone, t, region) for t in ("dram", THP, SMALL)}
        memories["hog"] = tier_profile(hogs, "dram", region)
        found["native"][program.name] = (native.user_s, native.cpu_s)
        found["thp"][program.name] = timed(program, {"near": THP}, None)
        found["memories"][program.name] = {
            name: profile.model_dump(mode="json") for name, profile in memories.items()
        }
    (BUILD / "here.json").write_text(json.dumps(found, indent=1))
    print(json.dumps({k: v for k, v in found.items() if k != "memories"}, indent=1))


def predict() -> None:
    judged = programs()
    found = json.loads((BUILD / "here.json").read_text())
    made = {
        key: found[key]
        for key in ("last_cache_bytes", "last_cache_beside_hog_bytes", "core_slowdown")
    }
    made["programs"] = {}
    for program in judged:
        made["programs"][program.name] = predicted = predicted_of(program, found)
        print(program.name, json.dumps(predicted), flush=True)
    PREDICTIONS.write_text(json.dumps(made, indent=1) + "\n")


def predicted_of(program: Program, found: dict[str, Any]) -> dict[str, Any]:
    memories = {
        name: Profile.model_validate(stored)
        for name, stored in found["memories"][program.name].items()
    }
    plain, thp, small, loaded = (memories[n] for n in ("dram", THP, SMALL, "hog"))
    native, on_thp = found["native"][program.name], found["thp"][program.name]
    sizes = [found["last_cache_bytes"], found["last_cache_beside_hog_bytes"]]
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        begin = time.monotonic()
        traced = trace(program, with_last_cache(sizes[0]), Path(folder, "alone"))
        seconds = time.monotonic() - begin
        coster, _, a = weigh(traced, plain, loaded, native, None)
        half = traced.movable_peak_bytes // 2
        _, asked, b = weigh(traced, thp, small, on_thp, half)
        half_plan(asked, b, program)
        elapsed = time.monotonic() - begin
        shared = traced
        if sizes[1] != sizes[0]:
            shared = trace(program, with_last_cache(sizes[1]), Path(folder, "shared"))
        slowdown = next_to_hog(
            coster, shared, memory_of(loaded, coster.near), found["core_slowdown"]
        )
    return {
        "native_time_s": native[1],
        "thp_time_s": on_thp[1],
        "traced_over_native": seconds / native[1],
        "advice_over_native": elapsed / native[1],
        "records": traced.records,
        "near_budget_bytes": half,
        "near_bytes": b.advice.near_bytes,
        "memories": {
            name: {k: f.value for k, f in profile.figures.items() if f.value}
            for name, profile in memories.items()
        },
        "hog": interval(a, "all_far"),
        "shared": slowdown,
        "movable_far": interval(b, "movable_far"),
        "plan": interval(b, "plan"),
    }


def with_last_cache(size: int) -> Caches:
    caches = caches_of(load_host("this"), {})
    caches.llc = type(caches.l2)(size, 16) if size else None
    return caches


def next_to_hog(
    near: Coster, traced: ProgramTrace, loaded: Memory, core_slowdown: float
) -> list[float]:
    """Slowdown with less of the last cache and of the core too, over the same cores as advise's."""
    everything = list(range(len(traced.sites)))
    alone = near.costs(near.near, [[]])[0]
    coster = Coster(traced, near.near, near.core)
    works = [
        replace(work, instruction_ns=work.instruction_ns * core_slowdown)
        for work in (near.work, *near.other_works)
    ]
    variants = [
        Assumed(coster.core, ns, works[0]) for ns in (loaded.latency, loaded.low, loaded.high)
    ]
    variants += [Assumed(coster.core, loaded.latency, work) for work in works[1:]]
    coster.system_s = near.system_s
    times = [costs[0] for costs in coster.costs_under(loaded, [everything], variants)]
    base = alone.time_ns / near.share_of(alone.instructions)
    ratios = [cost.time_ns / coster.share_of(cost.instructions) / base for cost in times]
    return [ratios[0], min(ratios), max(ratios)]


def interval(found: FarResult, key: str) -> list[float]:
    advice = found.advice
    low, high = advice.intervals[f"slowdown_{key}"]
    return [getattr(advice, f"slowdown_{key}"), low, high]


def timed(program: Program, tiers: dict[str, str], plan: Path | None) -> tuple[float, float]:
    """Median processor and wall time with its memory placed."""
    variables = environment(Placement(plan, tiers), None)
    runs = [once(program, variables) for _ in range(3)]
    time_s = median(wall for wall, _ in runs)
    return min(median(user for _, user in runs), time_s), time_s


def once(program: Program, variables: dict[str, str] | None = None) -> tuple[float, float]:
    """Wall time, and what of it the program's own instructions took."""
    begin, before = time.perf_counter(), os.times().children_user
    subprocess.run(program.command, env=variables, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin, os.times().children_user - before


@dataclass
class Ratios:
    """Over the first case of the same repeat: wall times, and user times."""

    wall: list[float] = field(default_factory=list)
    user: list[float] = field(default_factory=list)


def pairs(
    program: Program, cases: dict[str, tuple[dict[str, str] | None, bool]], other: int
) -> dict[str, Ratios]:
    """Times of each case over those of the first, case after case in each repeat."""
    ratios = {name: Ratios() for name in cases}
    for _ in range(REPEATS):
        base: tuple[float, float] | None = None
        for name, (variables, hog) in cases.items():
            with hogged(other) if hog else nullcontext():
                took = once(program, variables)
            base = base or took
            ratios[name].wall.append(took[0] / base[0])
            ratios[name].user.append(took[1] / max(base[1], 0.01))
    return ratios


def measure() -> None:
    cpu, other = sorted(os.sched_getaffinity(0))[:2]
    judged = programs()
    predicted = json.loads(PREDICTIONS.read_text())["programs"]
    os.sched_setaffinity(0, {cpu})
    print(
        "| program | setting | predicted | measured | error | user time alone |\n"
        "|---|---|---|---|---|---|"
    )
    for program in judged:
        near = environment(Placement(None, {"near": THP}), None)
        far = environment(Placement(None, {"near": THP, "far": SMALL}), None)
        plan = environment(
            Placement(PLANS / f"advise-{program.name}.plan", {"near": THP, "far": SMALL}), None
        )
        found = pairs(program, {"alone": (None, False), "hog": (None, True)}, other)
        found |= pairs(
            program,
            {"near": (near, False), "movable_far": (far, False), "plan": (plan, False)},
            other,
        )
        for key in ("hog", "shared", "movable_far", "plan"):
            value, low, high = predicted[program.name][key]
            ratios = found["hog" if key == "shared" else key]
            real = sorted(ratios.wall)
            error = value / median(real) - 1
            print(
                f"| {program.name} | {key} | {value:.3f} [{low:.3f}, {high:.3f}] | "
                f"{median(real):.3f} [{real[0]:.3f}, {real[-1]:.3f}] | {error:+.1%} | "
                f"{median(ratios.user):.3f} |",
                flush=True,
            )


def cost() -> None:
    """The whole command against one native run; `advise` itself reports the time of that."""
    print("| program | native | advise | ratio | of it traced |\n|---|---|---|---|---|")
    advised = [str(HERE.parent / "nearfar"), "advise", "--emulate", "--quiet"]
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        for program in programs():
            if program.name == "sort":
                program = Program("sort", [program.command[0], "8000000"])
            answer = Path(folder) / "answer.json"
            begin = time.perf_counter()
            subprocess.run(
                [*advised, "--json", str(answer), "--", *program.command],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            elapsed = time.perf_counter() - begin
            report = json.loads(answer.read_text())
            native = report["time_near_s"]
            print(
                f"| {program.name} | {native:.2f} s | {elapsed:.1f} s | {elapsed / native:.0f} | "
                f"{report['traced_time_s']:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    os.environ["PYTHONMALLOC"] = "malloc"
    {"here": here, "predict": predict, "measure": measure, "cost": cost}[sys.argv[1]]()
