"""A program run as it is: how long it takes, how much memory it touches, how it ends."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nearfar.errors import BadInputError
from nearfar.place.program import find

#: Runs of a program, and the time after which no further one is begun.
_RUNS, _ENOUGH_S = 3, 2.0


@dataclass(frozen=True)
class NativeRun:
    """Median and range of the wall times; resident memory at most; exit code of the last run."""

    time_s: float
    low_s: float
    high_s: float
    runs: int
    resident_bytes: int
    code: int


def check_program(program: str) -> Path:
    """The file to be started. Raises BadInputError that says what is wrong with it."""
    found = find(program)
    if found:
        return found
    path = Path(program)
    if path.is_dir():
        raise BadInputError(f"{program} is a folder", "name a program in it")
    if path.exists():
        raise BadInputError(
            f"{program} is not executable",
            f"chmod +x {program}, or name what runs it: -- python3 {program}",
        )
    raise BadInputError(f"there is no program {program}", "name one after --, as in a shell")


def run_natively(program: Sequence[str], limit_s: float) -> NativeRun:
    """Raises BadInputError where it does not end in time, is killed, or cannot be started."""
    times: list[float] = []
    while len(times) < _RUNS and sum(times) < _ENOUGH_S:
        elapsed, status, resident = _once(program, limit_s)
        times.append(elapsed)
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and elapsed >= limit_s:
            raise BadInputError(
                f"{program[0]} was still running after {limit_s:g} s",
                "give it less to do, or more time: --time 20min",
            )
        if code < 0:
            raise BadInputError(
                f"{program[0]} was killed by signal {-code}", "mend it, or its arguments, first"
            )
    return NativeRun(median(times), min(times), max(times), len(times), resident, code)


def _once(program: Sequence[str], limit_s: float) -> tuple[float, int, int]:
    begin = time.perf_counter()
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(program, stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError as error:
        raise BadInputError(
            f"{program[0]} cannot be started: {error.strerror}", "try it in a shell"
        ) from None
    killer = threading.Timer(limit_s, child.kill)
    killer.start()
    try:
        _, status, usage = os.wait4(child.pid, 0)
        elapsed = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        child.kill()
        raise
    finally:
        killer.cancel()
    return elapsed, status, usage.ru_maxrss * 1024
