"""Cost of libhmalloc's own calls: telling a block's tier, matching a plan, keeping watch.

Run it on a quiet machine from the checkout, after ``make build`` (memkind's header is wanted:
Debian package libmemkind-dev):

    .venv/bin/python benchmarks/hmalloc.py [tier_of] [watch] [quarantine] [plan]

Sides run in turns, in a random order within each of PAIRS rounds. The four malloc tests are
``nearfar bench malloc``; what its runs say of one allocator against the others is written as a
table by

    .venv/bin/python benchmarks/hmalloc.py table hmalloc:near RUN-DIRECTORY...

The figures go into benchmarks/results.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from nearfar.measure.allocators import Allocator, one_cpu, run
from nearfar.measure.malloc import point_name
from nearfar.process.helpers import NATIVE_DIR
from nearfar.stats import Estimate, median, ratio_of_pairs
from nearfar.store import read_run

HERE = Path(__file__).parent
PAIRS = int(os.environ.get("PAIRS", "12"))
QUESTIONS = 20_000_000
#: Pairs of free and malloc of one warm loop.
WARM = 5_000_000
#: A rule by call site that matches nothing the test does, and one by size that always does.
PLAN = """hmalloc-plan 1
rule near site=name:libnowhere.so+0x10
rule near size=1..1GiB
default near
"""

Side = Callable[[], float]


def interleave(sides: Mapping[str, Side], base: str) -> None:
    """Each side PAIRS times; the first named is compared with the base, value by value."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    order = random.Random(1)
    for _ in range(PAIRS):
        for name in order.sample(list(sides), len(sides)):
            found[name].append(sides[name]())
    for name, values in found.items():
        line = f"{name:28} {_said(median(values))} ns"
        if name != base:
            more = [a - b for a, b in zip(values, found[base], strict=True)]
            ratio = ratio_of_pairs(values, found[base])
            line += f"  ratio {_said(ratio)}  difference {_said(median(more))} ns"
        print(line, flush=True)


def _said(e: Estimate) -> str:
    return f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]"


def tier_of() -> None:
    program = Path(tempfile.gettempdir()) / "nearfar-reference-tier-of"
    subprocess.run(
        [
            "gcc",
            "-O2",
            "-I",
            HERE.parent / "include",
            HERE / "reference" / "tier_of.c",
            "-o",
            program,
            NATIVE_DIR / "libhmalloc.so",
            "-lmemkind",
        ],
        check=True,
    )
    loaded = {**os.environ, "LD_PRELOAD": str(NATIVE_DIR / "libhmalloc.so")}

    def side(who: str) -> Side:
        command = ["taskset", "-c", str(one_cpu()[0]), str(program), who, str(QUESTIONS)]
        return lambda: float(
            subprocess.run(
                command, check=True, capture_output=True, text=True, env=loaded
            ).stdout.split()[0]
        )

    print("\nWhich tier or kind, ns a question")
    interleave({who: side(who) for who in ("memkind", "hmalloc", "inline")}, "memkind")


def _warm(**variables: str) -> Side:
    """The warm loop of ``bench malloc`` under the preloaded library, ns a pair."""
    library = Allocator("preloaded", "preload", str(NATIVE_DIR / "libhmalloc-preload.so"))

    def measure() -> float:
        os.environ.update(variables)
        try:
            figures = run(library, "warm", count=WARM, seed=1, cpus=one_cpu(), settle_s=0.0)
        finally:
            for name in variables:
                del os.environ[name]
        return int(figures["wall_ns"]) / WARM

    return measure


def watch() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stats = {"NEARFAR_HMALLOC_STATS": "exit", "NEARFAR_HMALLOC_STATS_FILE": f"{folder}/%p"}
        print("\nStatistics and hardening, ns a warm pair")
        interleave(
            {
                "bare": _warm(),
                "statistics": _warm(**stats),
                "guard": _warm(NEARFAR_HMALLOC_HARDEN="guard"),
                "statistics and guard": _warm(NEARFAR_HMALLOC_HARDEN="guard", **stats),
                "and quarantine of 1 MiB": _warm(
                    NEARFAR_HMALLOC_HARDEN="guard,quarantine=1MiB", **stats
                ),
            },
            "bare",
        )


def quarantine() -> None:
    """A quarantine against a program that keeps as many freed blocks itself, and checks nothing."""
    program = Path(tempfile.gettempdir()) / "nearfar-reference-delayed-free"
    source = HERE / "reference" / "delayed_free.c"
    subprocess.run(["gcc", "-O2", source, "-o", program], check=True)
    library = {"LD_PRELOAD": str(NATIVE_DIR / "libhmalloc-preload.so")}

    def side(kept: int, **variables: str) -> Side:
        command = ["taskset", "-c", str(one_cpu()[0]), str(program), str(kept), str(WARM)]
        environment = {**os.environ, **library, **variables}
        return lambda: float(subprocess.check_output(command, text=True, env=environment))

    print("\nA quarantine, ns a warm pair")
    interleave(
        {
            "bare": side(0),
            "two arrays of 512 blocks": side(512),
            "quarantine of 1 MiB": side(0, NEARFAR_HMALLOC_HARDEN="quarantine=1MiB"),
        },
        "bare",
    )


def plan() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "benchmark.plan"
        file.write_text(PLAN)
        print("\nA plan, ns a warm pair (one malloc in each)")
        interleave(
            {"without a plan": _warm(), "with a plan": _warm(NEARFAR_HMALLOC_PLAN=str(file))},
            "without a plan",
        )


def table(ours: str, *runs: str) -> None:
    """A row a test and number of threads: CPU time on one thread, wall time on several."""
    for run_directory in runs:
        malloc = read_run(Path(run_directory)).sections.malloc
        assert malloc is not None
        lines = (Path(run_directory) / "samples.jsonl").read_text().splitlines()
        series = {one["series"]: one["values"] for one in map(json.loads, lines)}
        others = [fact.allocator for fact in malloc.allocators if fact.allocator != ours]
        print(f"| test | threads | of | {' | '.join(others)} | peak / glibc | left after 1 s |")
        print("|---" * (len(others) + 5) + "|")
        for row in (row for row in malloc.rows if row.allocator == ours):
            clock = "cpu" if row.threads == 1 else "wall"
            times = {
                name: series["malloc/" + point_name((row.test, row.threads, name, clock))]
                for name in (ours, *others)
            }
            ratios = [
                f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
                for e in (ratio_of_pairs(times[ours], times[name]) for name in others)
            ]
            print(
                f"| {row.test} | {row.threads} | {clock} | {' | '.join(ratios)} "
                f"| {row.peak_ratio_to_glibc:.2f} | {row.settled_share:.1%} |"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["table"]:
        table(*sys.argv[2:])
        sys.exit()
    for name in sys.argv[1:] or ["tier_of", "watch", "quarantine", "plan"]:
        sections = {"tier_of": tier_of, "watch": watch, "quarantine": quarantine, "plan": plan}
        sections[name]()
