"""How fast images are explored, the mutation suite over our own structures, what recording costs.

``.venv/bin/python benchmarks/crash.py [ours|pmdk|mutants|first|recording]...``

ours, pmdk: a mix of operations on each structure is explored with nothing taken away, nine times;
of structures on libpmemobj five times, and three with every image opened by it. mutants: each line
that flushes, fences or logs is taken away in turn. A mutant counts as found if a violation is seen,
as named if a finding blames a store that the call was there for. first: images until the first
violation, of these and of the programs in tests/programs that have known bugs. recording: a program
as it is, without its flushes, and under the instrumented recorder, in turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from nearfar.process.helpers import shipped
from nearfar.verify.explorer import call_sites, explore
from nearfar.verify.findings import Exploration
from nearfar.verify.recorder import record
from nearfar.verify.structures import ON_LIBPMEMOBJ, check

OURS = {"map": 400, "list": 400, "skip_list": 400, "queue": 400, "move": 200}
ROUNDS = 9
LIBRARY_BUDGET = 2000


_HEAD = (
    "| structure | operations | images | left | violations | by libpmemobj | images/s |\n"
    "|---|---|---|---|---|---|---|"
)


def ours() -> None:
    """Images a second of structures that recover by themselves, median and range of the rounds."""
    print(_HEAD)
    for structure, n in OURS.items():
        _row(structure, n, [explore("check", _trace(structure, n)) for _ in range(ROUNDS)])


def pmdk() -> None:
    """The same of structures on libpmemobj: logs replayed, then every image opened by it."""
    print(_HEAD)
    for structure in ON_LIBPMEMOBJ:
        trace = {**_trace(structure, 200), "budget": 40_000, "confirm_every": 100}
        _row(structure, 200, [check(trace) for _ in range(5)])
        trace = {**_trace(structure, 200), "budget": LIBRARY_BUDGET, "confirm_every": 1}
        _row(structure, 200, [check(trace) for _ in range(3)])


def _trace(structure: str, n: int) -> dict[str, object]:
    return {"structure": structure, "n": n, "seed": 1}


def _row(structure: str, n: int, runs: list[Exploration]) -> None:
    rates = sorted(run.states_per_s for run in runs)
    middle, one = rates[len(rates) // 2], runs[0]
    print(
        f"| {structure} | {n} | {one.states} | {one.states_left:.3g} | {one.violations} "
        f"| {one.confirmed} | {middle:,.0f} [{rates[0]:,.0f}, {rates[-1]:,.0f}] |",
        flush=True,
    )


def mutants() -> None:
    """Each call taken away, of traces of 200 operations."""
    print("| structure | mutants | found | named | and what is missing |")
    print("|---|---|---|---|---|")
    for structure in OURS:
        trace = _trace(structure, 200)
        sites = call_sites(trace)
        found = named = reported = 0
        for kind, site, stores in sites:
            file, _, line = site.rpartition(":")
            asked = {**trace, "violations": 20, "budget": 60_000}
            result = explore("check", {**asked, "suppress": f"{kind} {line} {file}"})
            missing = {one.missing for one in result.findings if one.store in stores}
            found += result.violations > 0
            named += bool(missing)
            reported += kind in missing
            if kind not in missing:
                blamed = sorted({f"{one.missing} {one.store}" for one in result.findings})
                print(f"<!-- {structure}: {kind} of {site}: {blamed or 'not found'} -->")
        print(f"| {structure} | {len(sites)} | {found} | {named} | {reported} |", flush=True)


def first() -> None:
    """Images until the first violation, of each call taken away and of each known bug."""
    print("| program | bugs | within 50 images | most images | not found |")
    print("|---|---|---|---|---|")
    for structure in OURS:
        trace = {**_trace(structure, 200), "violations": 1, "budget": 60_000}
        needed = {}
        for kind, site, _ in call_sites(trace):
            file, _, line = site.rpartition(":")
            result = explore("check", {**trace, "suppress": f"{kind} {line} {file}"})
            needed[f"{kind} {site}"] = result.states if result.violations else None
        _first_row(structure, needed)
    for name, bugs, library in (
        ("intset", 10, "-lpmem"),
        ("skip_list_obj", 8, "-lpmemobj"),
        ("removed_value", 1, "-lpmemobj"),
    ):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
            needed = {
                f"bug {bug}": _images_until_found(Path(made), name, bug, library)
                for bug in range(1, bugs + 1)
            }
        _first_row(name, needed)


def _first_row(program: str, needed: dict[str, int | None]) -> None:
    known = [images for images in needed.values() if images is not None]
    soon = sum(images <= 50 for images in known)
    print(f"| {program} | {len(needed)} | {soon} | {max(known)} | {len(needed) - len(known)} |")
    print(
        "<!--", ", ".join(f"{bug}: {images}" for bug, images in needed.items()), "-->", flush=True
    )


def _images_until_found(folder: Path, name: str, bug: int, library: str) -> int | None:
    """Records tests/programs/NAME.c with one of its bugs and explores it."""
    tree = Path(__file__).parent.parent
    source = tree / "tests" / "programs" / f"{name}.c"
    build = ["gcc", "-g", "-O1", f"-I{tree / 'include'}", str(source)]
    checks = name != "intset"
    shared = ["-shared", "-fPIC"] if checks else []
    subprocess.run([*build, "-DCHECK", *shared, "-o", folder / "check", library], check=True)
    subprocess.run([*build, f"-DBUG={bug}", "-o", folder / name, library], check=True)
    for file in ("pool", "log", "image", "output"):
        (folder / file).unlink(missing_ok=True)
    pool = str(folder / "pool")
    if checks:
        subprocess.run([folder / name, "make", pool], check=True)
    record([str(folder / name), *(["run"] if checks else []), pool], folder / "log", "preload")
    files = {file: folder / file for file in ("log", "image", "output")}
    checker = {"checker_library": folder / "check", "checker_function": "check"}
    result = explore(
        "run",
        {
            **files,
            **(checker if checks else {"checker0": folder / "check"}),
            "recovery": folder / "recovery",
            "violations": 1,
            "budget": 2500,
        },
    )
    return result.states if result.violations else None


def recording() -> None:
    """Nanoseconds of processor time an append, median and range of the rounds."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        folder = Path(made)
        plain, seen = _programs(folder)
        log = {"NEARFAR_CRASH_LOG": str(folder / "log"), "NEARFAR_CRASH_RECORDER": "instrumented"}
        ways: dict[str, tuple[Path, dict[str, str]]] = {
            "as it is": (plain, {}),
            "without its flushes": (plain, {"PMEM_NO_FLUSH": "1"}),
            "instrumented recorder": (seen, log),
        }
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, (program, variables) in ways.items():
                taken[way].append(_append_ns(program, folder / "pool", variables))
    print("| way | ns an append | over the program as it is |\n|---|---|---|")
    middle = {way: sorted(times)[ROUNDS // 2] for way, times in taken.items()}
    for way, times in taken.items():
        print(
            f"| {way} | {middle[way]:.1f} [{min(times):.1f}, {max(times):.1f}] "
            f"| {middle[way] / middle['as it is']:.2f} |"
        )


def _programs(folder: Path) -> tuple[Path, Path]:
    """The program of appends as it is, and compiled for the recorder."""
    plain, seen = folder / "plain", folder / "seen"
    source = Path(__file__).parent / "reference" / "crash_appends.c"
    build, watched = f"gcc -O2 -g {source}", f"{folder}/seen.o"
    subprocess.run(f"{build} -o {plain} -lpmem".split(), check=True)
    subprocess.run(f"{build} -fsanitize=thread -c -o {watched}".split(), check=True)
    library = shipped("libnearfar-crash-recorder.so")
    subprocess.run(f"gcc {watched} -o {seen} {library} -lpmem".split(), check=True)
    return plain, seen


def _append_ns(program: Path, pool: Path, variables: dict[str, str]) -> float:
    pool.unlink(missing_ok=True)
    environment = {**os.environ, "PMEM_IS_PMEM_FORCE": "1", **variables}
    done = subprocess.run(
        [program, pool, "200000"], env=environment, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    stages = {
        "ours": ours,
        "pmdk": pmdk,
        "mutants": mutants,
        "first": first,
        "recording": recording,
    }
    for stage in sys.argv[1:] or stages:
        stages[stage]()
