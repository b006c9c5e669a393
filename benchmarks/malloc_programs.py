"""Public malloc benchmarks under several allocators: CPU time and peak memory.

Usage: malloc_programs.py FOLDER [--rounds N] [--library NAME=PATH]... [--json FILE] [TEST...]

FOLDER has the programs of mimalloc-bench, built in release mode; short_threads.c is compiled here.
Each round runs each test once under each allocator, in a random order. Requires time(1). A value is
CPU time of the whole process (user and system), for tests of a fixed duration divided by the
operations that they report, and for rptest, which mostly sleeps, 1 / the operations per second of
CPU time that it reports. Ratios are those of the same round. Without TEST all tests run.
``--library`` adds or replaces an allocator.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nearfar.stats import Estimate, median, ratio_of_pairs

ROOT = Path(__file__).parent.parent
SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
OURS = "libhmalloc"
LIBRARIES = {
    OURS: ROOT / "build/editable/native/libhmalloc-preload.so",
    "glibc": None,
    "mimalloc": SYSTEM / "libmimalloc.so.2",
    "jemalloc": SYSTEM / "libjemalloc.so.2",
    "tcmalloc": SYSTEM / "libtcmalloc_minimal.so.4",
}
OWN = Path(__file__).parent / "short_threads.c"


@dataclass(frozen=True)
class Test:
    """A command, and where its output has its operations or operations per second of CPU time."""

    command: str
    operations: str = ""
    rate: str = ""


TESTS = {
    "larson": Test("larson 1 8 1000 5000 100 4141 2", r"Throughput = +(\d+) operations"),
    "larson-1": Test("larson 1 8 1000 5000 100 4141 1", r"Throughput = +(\d+) operations"),
    "mleak": Test("mleak 5"),
    "glibc-simple": Test("glibc-simple"),
    "glibc-thread": Test("glibc-thread 2", r"(\d+)"),
    "rptest": Test("rptest 2 0 1 2 500 1000 100 8 16000", rate=r"(\d+) memory ops/CPU second"),
    "alloc-test": Test("alloc-test 1"),
    "alloc-test-2": Test("alloc-test 2"),
    "xmalloc-test": Test("xmalloc-test -w 2 -t 1 -s 64", r"free/sec: ([\d.]+) M"),
    "mstress": Test("mstress 2 50 25"),
    "cache-scratch": Test("cache-scratch 2 1000 1 200000 2"),
    "malloc-large": Test("malloc-large"),
    "short-threads": Test("short_threads 10"),
    "short-threads-1": Test("short_threads 1"),
    "cfrac": Test("cfrac 17545186520507317056371138836327483792789528"),
}


@dataclass(frozen=True)
class Run:
    cpu_s: float
    peak_kib: float


def run(folder: Path, test: Test, library: Path | None) -> Run:
    """One run in a process of its own."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "NEARFAR_"))}
    preload = [] if library is None else [f"LD_PRELOAD={library}"]
    program, *arguments = test.command.split()
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile("w+") as output:
        # A process that is started from here begins with the peak of this one: time(1) has its own.
        if program == OWN.stem:
            folder = Path(scratch)
            subprocess.run(["cc", "-O2", "-pthread", OWN, "-o", folder / program], check=True)
        under_time = ["time", "-o", "peak", "-f", "%M", "env", *preload]
        command = [*under_time, str(folder / program), *arguments]
        started = subprocess.Popen(command, cwd=scratch, env=clean, stdout=output, stderr=output)
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
        peak_kib = float(Path(scratch, "peak").read_text().split()[-1])
    if started.returncode != 0:
        sys.exit(f"{test.command} under {library} ended with {started.returncode}:\n{text}")
    cpu_s = usage.ru_utime + usage.ru_stime
    if reported := test.operations or test.rate:
        found = re.search(reported, text)
        if found is None:
            sys.exit(f"{test.command} did not report its operations:\n{text}")
        cpu_s = (1 if test.rate else cpu_s) / float(found[1])
    return Run(cpu_s, peak_kib)


def said(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def report(name: str, runs: dict[str, list[Run]]) -> dict[str, object]:
    """Prints CPU time and peak of libhmalloc as ratios to each peer, the fastest peer first."""
    cpu = {who: [r.cpu_s for r in each] for who, each in runs.items()}
    peak = {who: median([r.peak_kib for r in each]).value for who, each in runs.items()}
    peers = sorted((who for who in runs if who != OURS), key=lambda who: median(cpu[who]).value)
    line = f"{name:14}"
    facts: dict[str, object] = {"peak_mib": {who: round(p / 1024, 1) for who, p in peak.items()}}
    for who in peers:
        ratio = ratio_of_pairs(cpu[OURS], cpu[who])
        line += f"  {who} {said(ratio)}"
        facts[who] = said(ratio)
    facts["best"] = peers[0]
    print(line)
    print(" " * 16 + "peak MiB " + ", ".join(f"{w} {p / 1024:.1f}" for w, p in peak.items()))
    sys.stdout.flush()
    return facts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("tests", nargs="*", default=list(TESTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_intermixed_args()
    libraries = dict(LIBRARIES)
    for each in chosen.library:
        name, path = each.split("=", 1)
        libraries[name] = Path(path)
    libraries = {name: path for name, path in libraries.items() if path is None or path.exists()}
    order = random.Random(1)
    facts = {}
    for name in chosen.tests:
        runs: dict[str, list[Run]] = {who: [] for who in libraries}
        for _ in range(chosen.rounds):
            for who in order.sample(list(libraries), len(libraries)):
                runs[who].append(run(chosen.folder.resolve(), TESTS[name], libraries[who]))
        facts[name] = report(name, runs)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
