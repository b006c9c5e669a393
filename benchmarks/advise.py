"""What `nearfar advise` predicts, recorded first, against wall time measured afterwards.

    .venv/bin/python benchmarks/advise.py here        memories, and the programs all near (quiet!)
    .venv/bin/python benchmarks/advise.py predict     writes benchmarks/predictions/advise.json
    .venv/bin/python benchmarks/advise.py measure     the programs in both settings, and errors

Setting (a): a copy loop on the other processor; far memory is DRAM as a chase finds it then.
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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nearfar.measure.memory_here import last_cache_here, memory_here
from nearfar.place.advising import Asked, Found, advise
from nearfar.place.costing import Coster
from nearfar.place.figures import core_of, memory_of
from nearfar.place.labels import labels_of
from nearfar.place.native_run import run_natively
from nearfar.place.plan_file import plan_text
from nearfar.place.preload import Placement, environment
from nearfar.place.promise import HeapPromise
from nearfar.place.traced import Traced, read_trace
from nearfar.profiles import load_host
from nearfar.records.profile import Profile
from nearfar.trace.caches import Caches, caches_of
from nearfar.trace.recording import record

HERE = Path(__file__).parent
PREDICTIONS = HERE / "predictions" / "advise.json"
PLANS = HERE / "predictions"
BUILD = HERE.parent / "build" / "advise"
REPEATS = int(os.environ.get("REPEATS", "5"))
MIB = 1 << 20
THP, SMALL = "dram,pages=thp", "dram,pages=4k"


@dataclass(frozen=True)
class Program:
    name: str
    command: list[str]


def programs() -> list[Program]:
    BUILD.mkdir(parents=True, exist_ok=True)
    for source in (HERE / "advise" / "map.c", HERE / "advise" / "hog.c",
                   HERE.parent / "tests" / "programs" / "sort.c"):  # fmt: skip
        target = BUILD / source.stem
        subprocess.run(["cc", "-O2", "-g", "-o", str(target), str(source)], check=True)
    table = str(HERE / "advise" / "table.sql")
    return [
        Program("sort", [str(BUILD / "sort"), "4000000"]),
        Program("map", [str(BUILD / "map"), "1000000", "3000000"]),
        Program("sqlite3", ["sqlite3", ":memory:", f".read {table}"]),
        Program("python", [sys.executable, str(HERE / "advise" / "words.py"), "60000"]),
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


def trace(program: Program, caches: Caches, folder: Path) -> Traced:
    file = folder / program.name
    record(program.command, file, caches, host="this", after=caches.last, prefetch=True, aside=True)
    return read_trace(file)


def half_plan(asked: Asked, found: Found, program: Program) -> Path:
    heap = HeapPromise(
        allocated_bytes=sum(s.allocated_bytes for s in asked.traced.heap()),
        peak_bytes=int(asked.traced.heap_sizes().max()), near_bytes=found.advice.near_bytes,
        near_budget_bytes=asked.budget, slowdown=found.advice.slowdown_plan,
        slowdown_all_far=found.advice.slowdown_all_far,
    )  # fmt: skip
    file = PLANS / f"advise-{program.name}.plan"
    file.write_text(plan_text(asked.traced.sites, found.point.near, found.gains, heap,
                              asked.labels, [Path(program.command[0]).name]))  # fmt: skip
    return file


def weigh(
    traced: Traced, near: Profile, far: Profile, time_s: float, budget: int | None
) -> tuple[Asked, Found]:
    coster = Coster(traced.path, traced.records, len(traced.sites), memory_of(near), core_of(near))
    coster.calibrate(time_s, traced.instructions)
    asked = Asked(traced, coster, near, time_s, budget, labels_of(traced.sites))
    return asked, advise(asked, memory_of(far, coster.near), far)


def here() -> None:
    cpu, other = sorted(os.sched_getaffinity(0))[:2]
    told = programs()
    os.sched_setaffinity(0, {cpu})
    region = 256 * MIB
    memories = {t: memory_here(t, region, cpu) for t in ("dram", THP, SMALL)}
    with hogged(other):
        memories["hog"] = memory_here("dram", region, cpu, "dram beside a hog")
    caches = caches_of(load_host("this"), {})
    size = caches.llc.size_bytes if caches.llc else 0
    if size:
        size = last_cache_here(size, 2 * caches.l2.size_bytes, cpu)
    found = {
        "memories": {name: profile.model_dump(mode="json") for name, profile in memories.items()},
        "last_cache_bytes": size,
        "native": {p.name: run_natively(p.command, 100).time_s for p in told},
        "thp": {p.name: timed(p, {"near": THP}, None) for p in told},
    }
    (BUILD / "here.json").write_text(json.dumps(found, indent=1))


def predict() -> None:
    told = programs()
    found = json.loads((BUILD / "here.json").read_text())
    memories = {name: Profile.model_validate(told) for name, told in found["memories"].items()}
    natives, on_thp = found["native"], found["thp"]
    plain, thp, small, loaded = (memories[n] for n in ("dram", THP, SMALL, "hog"))
    caches = caches_of(load_host("this"), {})
    size = found["last_cache_bytes"]
    caches.llc = type(caches.l2)(size, 16) if size else None
    made = {"memories": {name: {k: f.value for k, f in profile.figures.items() if f.value}
                         for name, profile in memories.items()},
            "last_cache_bytes": size, "programs": {}}  # fmt: skip
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        for program in told:
            begin = time.monotonic()
            traced = trace(program, caches, Path(folder))
            seconds = time.monotonic() - begin
            native = natives[program.name]
            _, a = weigh(traced, plain, loaded, native, None)
            half = int(traced.heap_sizes().max()) // 2
            asked, b = weigh(traced, thp, small, on_thp[program.name], half)
            half_plan(asked, b, program)
            made["programs"][program.name] = {
                "native_time_s": native, "thp_time_s": on_thp[program.name],
                "traced_over_native": seconds / native,
                "advice_over_native": (time.monotonic() - begin) / native,
                "records": traced.records, "near_budget_bytes": half,
                "near_bytes": b.advice.near_bytes,
                "hog": interval(a, "all_far"), "heap_far": interval(b, "heap_far"),
                "plan": interval(b, "plan"),
            }  # fmt: skip
            (Path(folder) / program.name).unlink()
            print(program.name, made["programs"][program.name], flush=True)
    PREDICTIONS.write_text(json.dumps(made, indent=1) + "\n")


def interval(found: Found, key: str) -> list[float]:
    advice = found.advice
    low, high = advice.intervals[f"slowdown_{key}"]
    return [getattr(advice, f"slowdown_{key}"), low, high]


def timed(program: Program, tiers: dict[str, str], plan: Path | None) -> float:
    """Median wall time with its memory placed."""
    variables = environment(Placement(plan, tiers), None)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run(program.command, env=variables, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - begin)
    return median(times)


def once(program: Program, variables: dict[str, str] | None = None) -> float:
    begin = time.perf_counter()
    subprocess.run(program.command, env=variables, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def pairs(program: Program, cases: dict[str, tuple[dict[str, str] | None, bool]],
          other: int) -> dict[str, list[float]]:  # fmt: skip
    """Times of each case over that of the first, case after case in each repeat."""
    ratios: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(REPEATS):
        base = 0.0
        for name, (variables, hog) in cases.items():
            if hog:
                with hogged(other):
                    elapsed = once(program, variables)
            else:
                elapsed = once(program, variables)
            base = base or elapsed
            ratios[name].append(elapsed / base)
    return ratios


def measure() -> None:
    cpu, other = sorted(os.sched_getaffinity(0))[:2]
    told = programs()
    predicted = json.loads(PREDICTIONS.read_text())["programs"]
    os.sched_setaffinity(0, {cpu})
    print("| program | setting | predicted | measured | error |\n|---|---|---|---|---|")
    for program in told:
        near = environment(Placement(None, {"near": THP}), None)
        far = environment(Placement(None, {"near": THP, "far": SMALL}), None)
        plan = environment(
            Placement(PLANS / f"advise-{program.name}.plan", {"near": THP, "far": SMALL}), None
        )
        found = pairs(program, {
            "alone": (None, False), "hog": (None, True),
        }, other)  # fmt: skip
        found |= pairs(program, {
            "near": (near, False), "heap_far": (far, False), "plan": (plan, False),
        }, other)  # fmt: skip
        for key in ("hog", "heap_far", "plan"):
            value, low, high = predicted[program.name][key]
            real = sorted(found[key])
            error = value / median(real) - 1
            print(f"| {program.name} | {key} | {value:.3f} [{low:.3f}, {high:.3f}] | "
                  f"{median(real):.3f} [{real[0]:.3f}, {real[-1]:.3f}] | {error:+.1%} |",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    os.environ["PYTHONMALLOC"] = "malloc"
    {"here": here, "predict": predict, "measure": measure}[sys.argv[1]]()
