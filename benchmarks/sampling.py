"""What sampling costs a program, in pairs of runs with and without it, in random order.

Usage:
  sampling.py program PAIRS -- COMMAND...        whole runs: CPU time, wall time, peak memory
  sampling.py service PAIRS PID -- LOAD...       a running service: its CPU time while LOAD runs

Prints the median ratio of the pairs, with its 95 % interval (binomial, of the order statistics),
as JSON. ``service`` has two ratios: by a clock of each CPU (``cpu_s``), and by a clock of each
thread, which needs no privileges (``thread_clock_cpu_s``). ``program`` includes the library that
logs allocations, as in ``nearfar advise``.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from nearfar._native import Sampler
from nearfar.sampling.run import PERIOD_NS, Sampled, attached_period_ns, sample_program
from nearfar.stats import median

_POLL_S = 0.03
#: What `nearfar advise --pid` samples for if --time does not say.
_ATTACHED_S = 30.0
_LIMIT_S = 600.0


def plain(command: Sequence[str]) -> dict[str, float]:
    """Run a program without sampling."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"cpu_s": used, "wall_s": time.monotonic() - begin}


def sampled(command: Sequence[str]) -> dict[str, float]:
    """Run it as ``nearfar advise`` does."""
    run: Sampled = sample_program(command, None, os.devnull, _LIMIT_S, PERIOD_NS)
    return {"cpu_s": run.user_s + run.system_s, "wall_s": run.wall_s}


@contextmanager
def attached(pid: int, *, per_cpu_clock: bool) -> Iterator[None]:
    """Sample a process meanwhile."""
    sampler = Sampler.attach(pid, attached_period_ns(_ATTACHED_S), 0, per_cpu_clock)
    done = threading.Event()

    def poll() -> None:
        while not done.wait(_POLL_S):
            sampler.poll()

    thread = threading.Thread(target=poll)
    thread.start()
    yield
    done.set()
    thread.join()
    sampler.stop()


def service(pid: int, load: Sequence[str], meanwhile: AbstractContextManager[None]) -> float:
    """CPU time of a service for one load, s."""

    def cpu_s() -> float:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) * 1e-9

    with meanwhile:
        before = cpu_s()
        subprocess.run(load, stdout=subprocess.DEVNULL, check=True)
        return cpu_s() - before


def compare_service(rounds: int, pid: int, load: Sequence[str]) -> dict[str, dict[str, float]]:
    """Ratios of a service's CPU time, with sampling over without."""
    ratios: dict[str, list[float]] = {"cpu_s": [], "thread_clock_cpu_s": []}
    for _ in range(rounds):
        ways = {
            "plain": lambda: nullcontext(),
            "cpu_s": lambda: attached(pid, per_cpu_clock=True),
            "thread_clock_cpu_s": lambda: attached(pid, per_cpu_clock=False),
        }
        order = random.sample(sorted(ways), len(ways))
        used = {name: service(pid, load, ways[name]()) for name in order}
        for name, values in ratios.items():
            values.append(used[name] / used["plain"])
    return {name: summary(values) for name, values in ratios.items()}


def compare(
    pairs: int, off: Callable[[], dict[str, float]], on: Callable[[], dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Ratios on / off of each figure."""
    ratios: dict[str, list[float]] = {}
    for _ in range(pairs):
        first = random.random() < 0.5
        one, other = (on(), off()) if first else (off(), on())
        with_, without = (one, other) if first else (other, one)
        for key, value in with_.items():
            ratios.setdefault(key, []).append(value / without[key])
    return {key: summary(values) for key, values in ratios.items()}


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median and its interval."""
    found = median(values)
    return {"ratio": found.value, "low": found.low, "high": found.high, "pairs": len(values)}


def main(arguments: Sequence[str]) -> None:
    """Run one comparison."""
    at = arguments.index("--")
    head, command = arguments[:at], arguments[at + 1 :]
    pairs = int(head[1])
    if head[0] == "program":
        found = compare(pairs, lambda: plain(command), lambda: sampled(command))
    else:
        found = compare_service(pairs, int(head[2]), command)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
