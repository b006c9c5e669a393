"""The verdict "disturbed": evidence that other work used the machine during a measurement.

A steady neighbor halves a figure without widening its spread, so the spread alone proves nothing.
The evidence comes from the kernel: CPU time against wall time of each timed thread, involuntary
switches, steal time, and CPU time of other processes. Each series is judged by itself, so that
averaging with undisturbed series does not hide a burst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfar._native import Usage

#: A timed thread whose CPU time is below this fraction of its wall time was preempted.
LEAST_CPU_SHARE = 0.95
#: CPUs' worth of work by others, averaged over the measurement, that spoils it: on a small machine,
#: and as a fraction of all CPUs of a large one, of which the daemons take more.
MOST_FOREIGN_CPUS = 0.25
MOST_FOREIGN_SHARE = 0.02
#: Fraction of the wall time of all CPUs taken by the hypervisor.
MOST_STEAL = 0.02
#: Interquartile range over median of one point; a larger one marks a wide point.
MOST_SPREAD = 0.25
#: Fraction of points that may be wide: near a cache's size, the physical pages of a buffer decide
#: between hit and miss, so a few points of a good curve are wide.
MOST_WIDE_POINTS = 0.2


@dataclass(frozen=True)
class Verdict:
    """Whether figures were disturbed, and by what."""

    noisy: bool
    reasons: list[str]
    foreign_cpus: float
    steal: float
    least_cpu_share: float
    worst_spread: float
    series: int = 1  # number of timed series


def most_foreign_cpus() -> float:
    """How many CPUs other processes may use on this machine during a measurement."""
    return max(MOST_FOREIGN_CPUS, MOST_FOREIGN_SHARE * (os.cpu_count() or 1))


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
class Watch:
    """Watches the machine during one series of measurements, starting at its construction.

    ``kernel_works``: the kernel works for the measurement (write-back of a file), so the CPU time
    of other processes cannot be distinguished from it.
    """

    name: str
    kernel_works: bool = False
    _start: _Accounts = field(default_factory=_accounts)
    _cpu_ns: int = 0
    _wall_ns: int = 0
    _switches: int = 0
    _observed_s: float = 0.0
    _spreads: dict[str, float] = field(default_factory=dict)

    def threads(self, usages: Sequence[Usage]) -> None:
        """Add timed loops: ``cpu_ns``, ``wall_ns``, ``involuntary_switches`` of each thread."""
        for usage in usages:
            self._cpu_ns += usage["cpu_ns"]
            self._wall_ns += usage["wall_ns"]
            self._switches += usage["involuntary_switches"]

    def observed(self, cpu_s: float) -> None:
        """Add CPU time of processes that are measured, and not children of this one."""
        self._observed_s += cpu_s

    def spread(self, point: str, spread: float) -> None:
        """Add the spread of one finished point with at least five repeats."""
        self._spreads[point] = spread

    def verdict(self) -> Verdict:
        """Judge all evidence so far."""
        now = _accounts()
        wall = max(now.wall_s - self._start.wall_s, 1e-9)
        own = now.own_s - self._start.own_s + self._observed_s
        foreign = max((now.busy_s - self._start.busy_s - own) / wall, 0.0)
        if self.kernel_works:
            foreign = 0.0
        steal = (now.steal_s - self._start.steal_s) / wall / (os.cpu_count() or 1)
        share = self._cpu_ns / self._wall_ns if self._wall_ns else 1.0
        worst = max(self._spreads.values(), default=0.0)
        reasons = [f"{self.name} – {reason}" for reason in self._reasons(share, foreign, steal)]
        return Verdict(bool(reasons), reasons, foreign, steal, share, worst)

    def _reasons(self, share: float, foreign: float, steal: float) -> Iterator[str]:
        if share < LEAST_CPU_SHARE:
            yield (
                f"timed threads ran only {share:.0%} of their time "
                f"({self._switches} involuntary switches)"
            )
        if foreign > most_foreign_cpus():
            yield f"other processes used {foreign:.2f} processors"
        if steal > MOST_STEAL:
            yield f"the hypervisor took {steal:.1%} of the processors' time"
        wide = [point for point, spread in self._spreads.items() if spread > MOST_SPREAD]
        if len(wide) > MOST_WIDE_POINTS * len(self._spreads):
            worst = max(wide, key=lambda point: self._spreads[point])
            yield (
                f"{len(wide)} of {len(self._spreads)} points spread by over {MOST_SPREAD:.0%} "
                f"({worst} by {self._spreads[worst]:.0%})"
            )


@dataclass
class NoiseMeter:
    """The verdicts of all series of a run: the run is disturbed if one series is."""

    _verdicts: list[Verdict] = field(default_factory=list)

    def judge(self, watch: Watch) -> None:
        """Add the verdict on a finished series."""
        self._verdicts.append(watch.verdict())

    def verdict(self) -> Verdict:
        """The worst value of each kind of evidence, and all reasons."""
        seen = self._verdicts
        reasons = [reason for verdict in seen for reason in verdict.reasons]
        return Verdict(
            bool(reasons),
            reasons,
            foreign_cpus=max((v.foreign_cpus for v in seen), default=0.0),
            steal=max((v.steal for v in seen), default=0.0),
            least_cpu_share=min((v.least_cpu_share for v in seen), default=1.0),
            worst_spread=max((v.worst_spread for v in seen), default=0.0),
            series=len(seen),
        )
