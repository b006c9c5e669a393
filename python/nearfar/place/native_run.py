"""Run a program unmodified: its duration, its peak memory, and its exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nearfar.errors import BadInputError
from nearfar.process.running_process import queued_s

#: Number of runs, and the time after which no further run starts.
_RUNS, _ENOUGH_S = 3, 2.0
#: The same for short programs, which run more often.
_SHORT_RUNS, _SHORT_S = 9, 0.5
#: Seconds between SIGTERM and SIGKILL.
_GRACE_S = 2.0


@dataclass(frozen=True)
class NativeRun:
    """Times and peak memory of several runs.

    Wall times are without the time for which the program's first thread waited for a CPU, which
    other programs cause. CPU times are those of all threads and children.
    """

    #: Median, minimum and maximum of the wall time.
    time_s: float
    low_s: float
    high_s: float
    #: Median user time; at most ``cpu_s``.
    user_s: float
    #: Lower quartile, minimum and median of the CPU time.
    cpu_s: float
    cpu_min_s: float
    cpu_median_s: float
    runs: int
    #: Peak of the largest run.
    resident_bytes: int
    #: Exit code of the last run.
    code: int
    #: False if a run was stopped after the time limit.
    ended: bool = True

    @property
    def system_s(self) -> float:
        """CPU time in the kernel."""
        return self.cpu_s - self.user_s


def run_natively(
    program: Sequence[str],
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    stdin: str = os.devnull,
) -> NativeRun:
    """Run a program, each time with the file ``stdin`` as standard input.

    It is stopped after the time limit. Raises BadInputError if it is killed by a foreign signal or
    cannot be started.
    """
    from nearfar.stats import lower_quartile

    runs: list[TimedRun] = []
    while _wanted(len(runs), sum(run.elapsed_s for run in runs)):
        runs.append(run_once(program, limit_s, environment, stdin))
        code = os.waitstatus_to_exitcode(runs[-1].status)
        if code < 0 and not runs[-1].stopped:
            raise BadInputError(
                f"{program[0]} was killed by signal {-code}", "fix it, or its arguments, first"
            )
    times = [run.time_s for run in runs]
    # Disturbances only add to CPU time: evicted cache lines, slower new pages.
    cpu = lower_quartile([run.user_s + run.system_s for run in runs])
    user_s = min(median(run.user_s for run in runs), cpu.value)
    return NativeRun(
        median(times),
        min(times),
        max(times),
        user_s,
        cpu.value,
        cpu.low,
        cpu.high,
        len(runs),
        max(run.resident_bytes for run in runs),
        code,
        ended=not any(run.stopped for run in runs),
    )


def _wanted(runs: int, elapsed_s: float) -> bool:
    """Whether to run again."""
    return (runs < _RUNS and elapsed_s < _ENOUGH_S) or (runs < _SHORT_RUNS and elapsed_s < _SHORT_S)


@dataclass(frozen=True)
class TimedRun:
    """One run; ``time_s``: its wall time less the time waited for a CPU; ``status``: as of wait();
    ``stopped``: by the time limit."""

    elapsed_s: float
    time_s: float
    user_s: float
    system_s: float
    resident_bytes: int
    status: int
    stopped: bool


class _Stopper:
    """Stops a process group after the time limit: SIGTERM first, then SIGKILL."""

    def __init__(self, group: int, limit_s: float) -> None:
        self._group = group
        self._timers = [
            threading.Timer(after, self._send, [number])
            for after, number in ((limit_s, signal.SIGTERM), (limit_s + _GRACE_S, signal.SIGKILL))
        ]
        self.fired = False
        for timer in self._timers:
            timer.start()

    def _send(self, number: int) -> None:
        self.fired = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._group, number)

    def cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()


def run_once(
    program: Sequence[str], limit_s: float, environment: Mapping[str, str] | None, stdin: str
) -> TimedRun:
    """Run a program once, its output discarded. Raises BadInputError if it cannot be started."""
    begin = time.perf_counter()
    child = _start(program, environment, stdin)
    stopper = _Stopper(child.pid, limit_s)
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        elapsed = time.perf_counter() - begin
        queued = queued_s(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    finally:
        stopper.cancel()
    return TimedRun(
        elapsed,
        max(elapsed - queued, 0.0),
        usage.ru_utime,
        usage.ru_stime,
        usage.ru_maxrss * 1024,
        status,
        stopper.fired,
    )


def _start(
    program: Sequence[str], environment: Mapping[str, str] | None, stdin: str
) -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    try:
        with Path(stdin).open("rb") as given:
            return subprocess.Popen(
                program,
                stdin=given,
                stdout=nothing,
                stderr=nothing,
                env=environment,
                process_group=0,
            )
    except FileNotFoundError:
        raise BadInputError(
            f"{program[0]} cannot be started: the interpreter that its first line or its header "
            "names does not exist",
            f"look with `head -1 {program[0]}` and `file {program[0]}`",
        ) from None
    except OSError as error:
        raise BadInputError(
            f"{program[0]} cannot be started: {error.strerror}", "try it in a shell"
        ) from None
