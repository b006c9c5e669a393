"""Simulated against measured time of three programs on this machine; predictions come first.

    .venv/bin/python benchmarks/truth.py profile    the memory's profile, ns an instruction (quiet!)
    .venv/bin/python benchmarks/truth.py predict [PROGRAM...]
                                                    writes benchmarks/predictions/truth.json
    .venv/bin/python benchmarks/truth.py measure [SECONDS]
                                                    the programs, next to the predictions;
                                                    two minutes on an idle machine by default

A pointer chase, STREAM's triad and random updates (GUPS), `truth/truth.c`, on huge and on small
pages. Predicted as a user would: `nearfar trace`, then `nearfar sim` with the profile that `nearfar
probe` wrote of this memory. What is predicted is the difference between a trace with STEPS and one
without, so that what the programs do before their timed loop does not count. Nanoseconds an
instruction are those of the same loop on 16 KiB, which misses nothing. The last cache is taken for
what a chase finds of it. Target: each within 15 %.

Programs run in turns, so that a disturbance meets all of them; what their loops did is checked
once, and that they had the pages they asked for, each time. Time is the median by the clock, with
its 95 % interval; next to it the CPU time, and the least time, which other guests lengthen less.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from host_now import host_now

from nearfar import stats
from nearfar.noise import Watch
from nearfar.profiles import load_profile
from nearfar.units import parse_size
from nearfar.workflows.memories import tier_profile

if TYPE_CHECKING:
    from nearfar._native import Usage

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "truth"
PREDICTIONS = HERE / "predictions" / "truth.json"
NEARFAR = str(HERE.parent / "nearfar")
TRUTH = str(BUILD / "truth")
MIB = 1 << 20
PAGES = ("thp", "4k")
REGION = "512MiB"
#: Minimum number of repeats.
MIN_REPEATS = 5
#: Share of a program's memory that may lie on pages of the other kind.
MAX_OTHER_PAGES = 0.02


@dataclass(frozen=True)
class Program:
    name: str
    bytes: int
    steps: int
    quick_steps: int  # on 16 KiB, for the time of an instruction

    def command(self, pages: str, steps: int | None = None, size: int | None = None) -> list[str]:
        return [
            TRUTH,
            self.name,
            str(size or self.bytes),
            str(self.steps if steps is None else steps),
            pages,
        ]


PROGRAMS = (
    Program("chase", 512 * MIB, 2_000_000, 20_000_000),
    Program("stream", 192 * MIB, 6, 20_000),
    Program("gups", 512 * MIB, 8_000_000, 20_000_000),
)


def build() -> int:
    """The processor to run on."""
    BUILD.mkdir(parents=True, exist_ok=True)
    source = HERE / "truth" / "truth.c"
    subprocess.run(["gcc", "-O3", "-o", TRUTH, str(source)], check=True)
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    return cpu


@dataclass(frozen=True)
class Ran:
    """One run, by the program's own accounts."""

    wall_ns: int
    cpu_ns: int
    switches: int
    huge_share: float
    checksum: int

    def usage(self) -> Usage:
        """As the verdict on noise takes it."""
        return {
            "wall_ns": self.wall_ns,
            "cpu_ns": self.cpu_ns,
            "minor_faults": 0,
            "major_faults": 0,
            "involuntary_switches": self.switches,
        }


def timed(command: list[str]) -> Ran:
    """Run it. Raises CalledProcessError where it did wrong."""
    wall, cpu, switches, huge, checksum = subprocess.check_output(command, text=True).split()
    return Ran(int(wall), int(cpu), int(switches), float(huge), int(checksum))


def answer_of(*arguments: str) -> dict[str, float]:
    out = subprocess.check_output([NEARFAR, *arguments, "--json", "-"], text=True)
    return json.loads(out)  # type: ignore[no-any-return]


def trace(file: Path, command: list[str], last_cache: int) -> None:
    """Into this file, which may hold an earlier trace."""
    file.unlink(missing_ok=True)
    llc = f"{last_cache}/16" if last_cache else "none"
    subprocess.run(
        [NEARFAR, "trace", "-q", "-o", str(file), "--llc", llc, "--", *command],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def instruction_ns(program: Program, folder: Path) -> float:
    """Of the loop on 16 KiB."""
    counts = []
    for steps in (0, program.quick_steps // 100):
        file = folder / "quick"
        trace(file, program.command("4k", steps, 16384), 0)
        counts.append(answer_of("trace", "stats", str(file))["instructions"])
    a_step = (counts[1] - counts[0]) / (program.quick_steps // 100)
    took = median(timed(program.command("4k", program.quick_steps, 16384)).cpu_ns for _ in range(5))
    return took / program.quick_steps / a_step


def profile() -> None:
    usual = os.sched_getaffinity(0)
    for pages in PAGES:
        out = BUILD / pages
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run(
            [
                NEARFAR,
                "probe",
                "-q",
                "--tier",
                f"dram,pages={pages}",
                "--region",
                REGION,
                "--time",
                "25s",
                "--out",
                str(out),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    cpu = build()
    size = int(host_now(cpu, []).scalar("l3_bytes"))
    os.sched_setaffinity(0, usual)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        ns = {p.name: instruction_ns(p, Path(folder)) for p in PROGRAMS}
    found = {"last_cache_bytes": size, "instruction_ns": ns}
    (BUILD / "here.json").write_text(json.dumps(found, indent=1))
    print(found)


def predict() -> None:
    usual = os.sched_getaffinity(0)
    build()
    os.sched_setaffinity(0, usual)
    found = json.loads((BUILD / "here.json").read_text())
    wanted = sys.argv[2:] or [program.name for program in PROGRAMS]
    before = json.loads(PREDICTIONS.read_text()) if PREDICTIONS.exists() else {}
    same = all(before.get(key) == value for key, value in found.items())
    made: dict[str, object] = (before if same else {}) | found
    for program in (p for p in PROGRAMS if p.name in wanted):
        ns = found["instruction_ns"][program.name]
        times: dict[str, list[float]] = {pages: [] for pages in PAGES}
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            file = Path(folder) / "trace"
            for steps in (0, program.steps):
                trace(file, program.command("thp", steps), found["last_cache_bytes"])
                for pages in PAGES:
                    device = str(BUILD / pages / "profile.toml")
                    result = answer_of(
                        "sim",
                        str(file),
                        "--near",
                        device,
                        "--far",
                        device,
                        "--instruction-ns",
                        str(ns),
                    )
                    times[pages].append(result["time_s"])
        made[program.name] = {pages: t[1] - t[0] for pages, t in times.items()}
        print(program.name, made[program.name], flush=True)
    PREDICTIONS.write_text(json.dumps(made, indent=1) + "\n")


def measure() -> None:
    build()
    predicted = json.loads(PREDICTIONS.read_text())
    watch, before = Watch("programs"), os.getloadavg()
    runs = repeated()
    print("| program | pages | simulated | measured | on the processor | least | error |")
    print("|---|---|---|---|---|---|---|")
    for (name, pages), measured in runs.items():
        watch.threads([ran.usage() for ran in measured])
        real = stats.median([ran.wall_ns * 1e-9 for ran in measured])
        watch.spread(f"{name} {pages}", real.spread)
        on_cpu = median(ran.cpu_ns for ran in measured) * 1e-9
        least = min(ran.wall_ns for ran in measured) * 1e-9
        value = predicted[name][pages]
        print(
            f"| {name} | {pages} | {value:.4f} s | {real.value:.4f} s "
            f"[{real.low:.4f}, {real.high:.4f}] | {on_cpu:.4f} s | {least:.4f} s "
            f"| {value / real.value - 1:+.1%} |"
        )
    print(f"chase over {REGION} as the profile has it, and now: {'; '.join(memory_now())}")
    print(f"{len(measured)} repeats; load averages before and after: {before}, {os.getloadavg()}")
    reasons = [*watch.verdict().reasons, *wrong_pages(runs)]
    print(f"too noisy: {'; '.join(reasons)}" if reasons else "quiet")


def repeated() -> dict[tuple[str, str], list[Ran]]:
    """All programs in turns, for as long as there is time; ends where one did wrong."""
    began, a_round = time.monotonic(), 0.0
    right = {p.name: timed([*p.command("thp"), "check"]).checksum for p in PROGRAMS}
    runs: dict[tuple[str, str], list[Ran]] = {(p.name, g): [] for p in PROGRAMS for g in PAGES}
    done = 0
    budget_s = float(sys.argv[2]) if len(sys.argv) > 2 else 110.0
    while done < MIN_REPEATS or time.monotonic() - began + a_round < budget_s:
        at = time.monotonic()
        for program in PROGRAMS:
            for pages in PAGES:
                ran = timed(program.command(pages))
                if ran.checksum != right[program.name]:
                    sys.exit(f"{program.name} {pages}: its checksum is that of another result")
                runs[program.name, pages].append(ran)
        done, a_round = done + 1, time.monotonic() - at
    return runs


def memory_now() -> Iterator[str]:
    """Latencies of the profiles next to those of now: has the machine changed since?"""
    cpu = min(os.sched_getaffinity(0))
    here = host_now(cpu, ["dram"])
    for pages in PAGES:
        then = load_profile(BUILD / pages / "profile.toml").scalar("read_latency_ns")
        now = tier_profile(here, f"dram,pages={pages}", parse_size(REGION))
        walk = now.scalar("page_walk_ns") if pages == "4k" else 0.0
        yield f"{pages} {then:.0f}, {now.scalar('read_latency_ns') + walk:.0f} ns"


def wrong_pages(runs: dict[tuple[str, str], list[Ran]]) -> Iterator[str]:
    """Programs that did not get the pages they asked for."""
    for (name, pages), measured in runs.items():
        wanted = float(pages == "thp")
        off = max(measured, key=lambda ran: abs(ran.huge_share - wanted))
        if abs(off.huge_share - wanted) > MAX_OTHER_PAGES:
            yield f"{name} {pages} had {off.huge_share:.0%} on huge pages"


if __name__ == "__main__":
    {"profile": profile, "predict": predict, "measure": measure}[sys.argv[1]]()
