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
    """Median and range of the times, and what of the median a processor was busy with the program's
    own instructions; resident memory at most; exit code of the last run.

    Times are wall times less what the program's first thread waited for a processor, which is the
    other programs' doing.
    """

    time_s: float
    low_s: float
    high_s: float
    busy_s: float
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
    runs: list[_Run] = []
    while len(runs) < _RUNS and sum(run.elapsed_s for run in runs) < _ENOUGH_S:
        runs.append(_once(program, limit_s))
        code = os.waitstatus_to_exitcode(runs[-1].status)
        if code < 0 and runs[-1].elapsed_s >= limit_s:
            raise BadInputError(
                f"{program[0]} was still running after {limit_s:g} s",
                "give it less to do, or more time: --time 20min",
            )
        if code < 0:
            raise BadInputError(
                f"{program[0]} was killed by signal {-code}", "mend it, or its arguments, first"
            )
    times = [run.time_s for run in runs]
    busy = min(median(times), median(run.user_s for run in runs))
    resident = max(run.resident_bytes for run in runs)
    return NativeRun(median(times), min(times), max(times), busy, len(runs), resident, code)


@dataclass(frozen=True)
class _Run:
    elapsed_s: float
    time_s: float
    user_s: float
    resident_bytes: int
    status: int


def _once(program: Sequence[str], limit_s: float) -> _Run:
    begin = time.perf_counter()
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(program, stdin=nothing, stdout=nothing, stderr=nothing)
    except FileNotFoundError:
        raise BadInputError(
            f"{program[0]} cannot be started: what its first line, or its header, wants to be run "
            "by is not there",
            f"look with `head -1 {program[0]}` and `file {program[0]}`",
        ) from None
    except OSError as error:
        raise BadInputError(
            f"{program[0]} cannot be started: {error.strerror}", "try it in a shell"
        ) from None
    killer = threading.Timer(limit_s, child.kill)
    killer.start()
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        elapsed = time.perf_counter() - begin
        queued = _queued_s(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        child.kill()
        raise
    finally:
        killer.cancel()
    return _Run(elapsed, max(elapsed - queued, 0.0), usage.ru_utime,
                usage.ru_maxrss * 1024, status)  # fmt: skip


def _queued_s(process: int) -> float:
    """What its first thread waited for a processor (proc(5), schedstat); 0 where it is not told."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0
