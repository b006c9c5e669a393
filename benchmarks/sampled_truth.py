"""Sampled advice against measured time, for programs that were not written here.

Usage:
  sampled_truth.py predict PROGRAMS.json PREDICTIONS.json
  sampled_truth.py measure PROGRAMS.json PREDICTIONS.json PAIRS
  sampled_truth.py hog PROFILE.toml
  sampled_truth.py predict PROGRAMS.json PREDICTIONS.json PROFILE.toml
  sampled_truth.py measure PROGRAMS.json PREDICTIONS.json PAIRS hog

PROGRAMS.json has a command, a list of words, by name. Near memory is DRAM on transparent huge
pages, far memory is DRAM on 4 KiB pages; all data of the program lie in one of them. In the setting
``hog``, far memory is DRAM while a loop on another CPU copies 256 MiB back and forth: the first
command measures it, and programs run on CPU 0 with and without the loop.

``predict`` writes what ``nearfar advise`` says, which is committed before ``measure`` runs the
programs in interleaved pairs and prints each ratio of CPU times (median, 95 % interval of the order
statistics) next to it, and the same of CPU times in user mode alone: a hypervisor that takes free
memory back in large blocks makes the first touch of a huge page up to 20 times slower, and its
faults count as kernel time of the runs on huge pages.

Needs root: huge pages are enabled for all memory meanwhile, and disabled for the far runs.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from nearfar.stats import Estimate, median, ratio_of_pairs

_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_PR_SET_THP_DISABLE = 41
_FIGURES = ("slowdown_all_far", "slowdown_movable_far")
_ADVISE = (str(Path(__file__).parent.parent / "nearfar"), "advise")
_PAGES = ("--near", "dram,pages=thp", "--far", "dram,pages=4k")
_HOG = Path(__file__).parent / "advise" / "hog.c"
_PROGRAM_CPU, _HOG_CPU = "0", "1"


@contextmanager
def huge_pages() -> Iterator[None]:
    """All anonymous memory on huge pages."""
    before = _THP.read_text().split("[")[1].split("]")[0]
    _THP.write_text("always")
    try:
        yield
    finally:
        _THP.write_text(before)


@contextmanager
def hog() -> Iterator[None]:
    """A steady load on memory, from another CPU."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/hog"
        subprocess.run(["cc", "-O2", str(_HOG), "-o", program], check=True)
        with subprocess.Popen(["taskset", "-c", _HOG_CPU, program]) as running:
            try:
                yield
            finally:
                running.kill()


def measure_hogged(profile: Path) -> None:
    """Write DRAM next to the hog as a device profile."""
    probe = (_ADVISE[0], "probe", "--quick", "--threads", "1", "--cpus", _PROGRAM_CPU)
    with tempfile.TemporaryDirectory() as folder, hog():
        subprocess.run([*probe, "--out", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
        profile.write_text(Path(folder, "run", "profile.toml").read_text())


def predicted(command: Sequence[str], memories: Sequence[str]) -> dict[str, Any]:
    """Slowdowns with their intervals, and what they stand on."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "advice.json"
        subprocess.run(
            [*_ADVISE, *memories, "--json", str(file), "--out", f"{folder}/run", "--", *command],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        found = json.loads(file.read_text())
    figures = {key: [found[key], *found["intervals"][key]] for key in _FIGURES}
    return {**figures, "cpu_s": found["cpu_near_s"]}


class CpuTime(NamedTuple):
    """Of a run, in seconds."""

    total: float
    user: float


def cpu_time(command: Sequence[str], prepare: Callable[[], object] | None) -> CpuTime:
    """CPU time of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, preexec_fn=prepare,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return CpuTime(user + after.ru_stime - before.ru_stime, user)


def small_pages() -> None:
    """In a child: it gets no huge pages, nor do its children."""
    ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)


def on_small_pages(command: Sequence[str]) -> CpuTime:
    """A far run of the setting of pages."""
    return cpu_time(command, small_pages)


def next_to_hog(command: Sequence[str]) -> CpuTime:
    """A far run of the setting of the hog."""
    with hog():
        return cpu_time(command, None)


def measured(
    command: Sequence[str], pairs: int, far_run: Callable[[Sequence[str]], CpuTime]
) -> tuple[Estimate, Estimate, float]:
    """CPU time far over near, the same in user mode, seconds near."""
    near: list[CpuTime] = []
    far: list[CpuTime] = []
    cpu_time(command, None)  # files are in the page cache
    for _ in range(pairs):
        for side in random.sample((near, far), 2):
            side.append(far_run(command) if side is far else cpu_time(command, None))
    total = ratio_of_pairs([run.total for run in far], [run.total for run in near])
    user = ratio_of_pairs([run.user for run in far], [run.user for run in near])
    return total, user, median([run.total for run in near]).value


def predict(programs: Path, file: Path, hogged: str | None) -> None:
    """Write predictions of all programs."""
    commands = json.loads(programs.read_text())
    memories = _PAGES if hogged is None else ("--near", "dram", "--far", hogged)
    with huge_pages() if hogged is None else nullcontext():
        found = {name: predicted(command, memories) for name, command in commands.items()}
    file.write_text(json.dumps(found, indent=1) + "\n")


def _text(ratio: Estimate) -> str:
    return f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def measure(programs: Path, file: Path, pairs: int, *, hogged: bool) -> None:
    """Print measured ratios next to the predictions."""
    covered = close = 0
    commands, found = json.loads(programs.read_text()), json.loads(file.read_text())
    pinned = ("taskset", "-c", _PROGRAM_CPU) if hogged else ()
    far_run = next_to_hog if hogged else on_small_pages
    with nullcontext() if hogged else huge_pages():
        for name, said in found.items():
            ratio, user, near_s = measured((*pinned, *commands[name]), pairs, far_run)
            slowdown, least, most = said["slowdown_all_far"]
            error = slowdown / ratio.value - 1
            covered += least <= ratio.value <= most
            close += abs(error) <= 0.15
            print(
                f"{name:12} predicted {slowdown:.3f} [{least:.3f}, {most:.3f}]  measured "
                f"{_text(ratio)}  error {error:+.1%}  user mode {_text(user)}  {near_s:.2f} s  "
                f"{'inside' if least <= ratio.value <= most else 'outside'}",
                flush=True,
            )
    print(f"{close} of {len(found)} within 15 %, {covered} inside; load {os.getloadavg()[0]:.1f}")


def main(words: Sequence[str]) -> None:
    """Run one command of the usage."""
    verb, first, *rest = words
    if verb == "hog":
        measure_hogged(Path(first))
    elif verb == "predict":
        predict(Path(first), Path(rest[0]), rest[1] if len(rest) > 1 else None)
    else:
        measure(Path(first), Path(rest[0]), int(rest[1]), hogged=rest[2:] == ["hog"])


if __name__ == "__main__":
    main(sys.argv[1:])
