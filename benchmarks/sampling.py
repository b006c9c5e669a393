"""Cost of sampling for a program, in rounds of runs with and without it, in random order.

Usage:
  sampling.py program ROUNDS -- COMMAND...             whole runs: CPU time, wall time, memory
  sampling.py service ROUNDS PID cpu|thread -- LOAD... a running service: CPU time while LOAD runs
  sampling.py summary FILE...                          rounds of a service that were printed

Prints the median ratio to the run without sampling of the same round, with its 95 % interval
(binomial, of the order statistics), as JSON. ``program`` has the parts of what ``nearfar advise``
does: the clock, page faults too, the library that logs allocations, and all of it, in bursts and
not, with the memory of the log and the share of the time in which the clock ran. Standard input of
the command is that of the benchmark, if that is a file. ``service`` samples by a clock of each CPU,
or by clocks of threads in bursts, which need no privileges, and prints each round before the
summary.
"""

from __future__ import annotations

import json
import os
import random
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from nearfar._native import Sampler
from nearfar.sampling.run import (
    FAULT_PERIOD,
    MAX_COST,
    PERIOD_NS,
    Polling,
    attached_period_ns,
    with_log,
)
from nearfar.stats import median

#: Default time for which `nearfar advise --pid` samples.
_ATTACHED_S = 30.0


class Way(NamedTuple):
    """A part of sampling."""

    period_ns: int
    fault_period: int
    has_log: bool
    max_cost: float = MAX_COST


_NEVER_NS = 3_600_000_000_000
#: Variants that are compared with a run as it is.
_WAYS = {
    "clock": Way(PERIOD_NS, 0, has_log=False),
    "clock and faults": Way(PERIOD_NS, FAULT_PERIOD, has_log=False),
    "log": Way(_NEVER_NS, 0, has_log=True, max_cost=0.0),
    "all, not in bursts": Way(PERIOD_NS, FAULT_PERIOD, has_log=True, max_cost=0.0),
    "all": Way(PERIOD_NS, FAULT_PERIOD, has_log=True),
}


def run(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
    """Times of a run."""
    if is_file := stat.S_ISREG(os.fstat(0).st_mode):
        os.lseek(0, 0, os.SEEK_SET)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        command,
        env=environment,
        stdin=None if is_file else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    wall_s, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"cpu_s": used, "wall_s": wall_s}


def sampled(command: Sequence[str], way: Way) -> dict[str, float]:
    """Times of a run under a part of what ``nearfar advise`` does, and the log's memory."""
    sampler = Sampler.open(way.period_ns, way.fault_period, max_cost=way.max_cost)
    environment = dict(os.environ)
    if way.has_log:
        environment = with_log(environment, sampler.log_value())
    with Polling(sampler):
        times = run(command, environment)
        found = {**times, "log_bytes": log_bytes()}
    return {**found, "share": sampler.enabled_share()}


def log_bytes() -> float:
    """Memory of all files of the log in this process."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if "nearfar-allocation-log" in str(descriptor.readlink()):
                found += descriptor.stat().st_blocks * 512
    return found


@contextmanager
def attached(pid: int, *, per_cpu_clock: bool) -> Iterator[None]:
    """Sample a process meanwhile."""
    sampler = Sampler.attach(pid, attached_period_ns(_ATTACHED_S), 0, per_cpu_clock)
    with Polling(sampler):
        yield


def service(pid: int, load: Sequence[str], meanwhile: AbstractContextManager[None]) -> float:
    """CPU time of a service for one load, s."""

    def cpu_s() -> float:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) * 1e-9

    with meanwhile:
        before = cpu_s()
        subprocess.run(load, stdout=subprocess.DEVNULL, check=True)
        return cpu_s() - before


def compare_service(rounds: int, pid: int, clock: str, load: Sequence[str]) -> list[float]:
    """Ratios of a service's CPU time, with sampling over without, each printed."""
    found = []
    for _ in range(rounds):
        used = {}
        for is_sampled in random.sample((False, True), 2):
            meanwhile = attached(pid, per_cpu_clock=clock == "cpu") if is_sampled else nullcontext()
            used[is_sampled] = service(pid, load, meanwhile)
        found.append(used[True] / used[False])
        print(json.dumps({"sampled_s": used[True], "plain_s": used[False]}), flush=True)
    return found


def printed_ratios(files: Sequence[str]) -> list[float]:
    """Ratios of the rounds in files of output."""
    lines = [line for file in files for line in Path(file).read_text().splitlines()]
    rounds = [json.loads(line) for line in lines if line.startswith('{"sampled_s"')]
    return [each["sampled_s"] / each["plain_s"] for each in rounds]


def compare_program(rounds: int, command: Sequence[str]) -> dict[str, dict[str, object]]:
    """Ratios of CPU and wall time for each part."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ("plain", *_WAYS)}
    for _ in range(rounds):
        for name in random.sample(sorted(found), len(found)):
            way = _WAYS.get(name)
            found[name].append(sampled(command, way) if way else run(command, os.environ))
    return {
        name: {
            **{key: summary(ratios(found[name], found["plain"], key)) for key in found["plain"][0]},
            "log_bytes": max(each["log_bytes"] for each in found[name]),
            "share": median([each["share"] for each in found[name]]).value,
        }
        for name in _WAYS
    }


def ratios(
    some: Sequence[dict[str, float]], others: Sequence[dict[str, float]], key: str
) -> list[float]:
    """A figure of runs over that of others, in the same order."""
    return [one[key] / other[key] for one, other in zip(some, others, strict=True)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median and its interval."""
    found = median(values)
    return {"ratio": found.value, "low": found.low, "high": found.high, "pairs": len(values)}


def main(arguments: Sequence[str]) -> None:
    """Run one comparison."""
    verb, *words = arguments
    if verb == "summary":
        print(json.dumps(summary(printed_ratios(words))))
        return
    at = words.index("--")
    head, command = words[:at], words[at + 1 :]
    rounds = int(head[0])
    if verb == "program":
        print(json.dumps(compare_program(rounds, command), indent=1))
    else:
        print(json.dumps(summary(compare_service(rounds, int(head[1]), head[2], command))))


if __name__ == "__main__":
    main(sys.argv[1:])
