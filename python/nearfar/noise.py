"""The verdict "too noisy": evidence that something else used the machine while we measured.

A steady neighbour halves a figure without widening its spread, so spread alone proves nothing. The
evidence is what the kernel says it did: processor time against wall time of each timed thread,
involuntary switches, time stolen by the hypervisor, and processor time of other processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfar._native import Usage

#: A timed thread that ran less than this share of its wall time was pushed aside.
LEAST_CPU_SHARE = 0.95
#: Processors' worth of work by others, averaged over the measurement, that spoils it.
MOST_FOREIGN_CPUS = 0.25
#: Share of the wall time of all processors taken by the hypervisor.
MOST_STEAL = 0.02
#: Interquartile range over median of one series: more is a wide one.
MOST_SPREAD = 0.25
#: Share of series that may be wide: where a cache ends, which physical pages were got decides on
#: hit or miss, so a few points of a good curve are wide by nature.
MOST_WIDE_SERIES = 0.2


@dataclass(frozen=True)
class Verdict:
    """Whether figures were disturbed, and by what."""

    noisy: bool
    reasons: list[str]
    foreign_cpus: float
    steal: float
    least_cpu_share: float
    worst_spread: float


@dataclass
class _Accounts:
    busy_s: float
    steal_s: float
    own_s: float
    wall_s: float


def _accounts() -> _Accounts:
    # /proc/stat, first line: cpu user nice system idle iowait irq softirq steal, in clock ticks
    ticks = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    hertz = os.sysconf("SC_CLK_TCK")
    own = os.times()
    return _Accounts(
        (user + nice + system + irq + softirq) / hertz,
        steal / hertz,
        own.user + own.system + own.children_user + own.children_system,
        time.monotonic(),
    )


@dataclass
class NoiseMeter:
    """Watches the machine from its construction on; timed threads tell it their accounts."""

    _start: _Accounts = field(default_factory=_accounts)
    _cpu_ns: int = 0
    _wall_ns: int = 0
    _switches: int = 0
    _series: int = 0
    _wide_series: int = 0
    _worst_spread: float = 0.0
    _worst_series: str = ""

    def thread(self, usage: Usage) -> None:
        """Count one timed loop of one thread: ``cpu_ns``, ``wall_ns``, ``involuntary_switches``."""
        self._cpu_ns += usage["cpu_ns"]
        self._wall_ns += usage["wall_ns"]
        self._switches += usage["involuntary_switches"]

    def threads(self, usages: Sequence[Usage]) -> None:
        """Count one timed loop of a team."""
        for usage in usages:
            self.thread(usage)

    def series(self, name: str, spread: float) -> None:
        """Note the spread of one finished series of at least five repeats."""
        self._series += 1
        self._wide_series += spread > MOST_SPREAD
        if spread > self._worst_spread:
            self._worst_spread, self._worst_series = spread, name

    def verdict(self) -> Verdict:
        """Judge everything seen so far; the meter goes on."""
        now = _accounts()
        wall = max(now.wall_s - self._start.wall_s, 1e-9)
        own = now.own_s - self._start.own_s
        foreign = max((now.busy_s - self._start.busy_s - own) / wall, 0.0)
        steal = (now.steal_s - self._start.steal_s) / wall / (os.cpu_count() or 1)
        share = self._cpu_ns / self._wall_ns if self._wall_ns else 1.0
        reasons = []
        if share < LEAST_CPU_SHARE:
            reasons.append(
                f"timed threads ran only {share:.0%} of their time "
                f"({self._switches} involuntary switches)"
            )
        if foreign > MOST_FOREIGN_CPUS:
            reasons.append(f"other processes used {foreign:.2f} processors")
        if steal > MOST_STEAL:
            reasons.append(f"the hypervisor took {steal:.1%} of the processors' time")
        if self._wide_series > MOST_WIDE_SERIES * self._series:
            reasons.append(
                f"{self._wide_series} of {self._series} series spread by over {MOST_SPREAD:.0%} "
                f"({self._worst_series} by {self._worst_spread:.0%})"
            )
        return Verdict(bool(reasons), reasons, foreign, steal, share, self._worst_spread)
