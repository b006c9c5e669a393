"""The verdict "too noisy": evidence that something else used the machine while we measured.

A steady neighbour halves a figure without widening its spread, so spread alone proves nothing. The
evidence is what the kernel says it did: processor time against wall time of each timed thread,
involuntary switches, time stolen by the hypervisor, and processor time of other processes. It is
judged series by series, so that a burst is not averaged away by the calm around it.
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

#: A timed thread that ran less than this share of its wall time was pushed aside.
LEAST_CPU_SHARE = 0.95
#: Processors' worth of work by others, averaged over the measurement, that spoils it.
MOST_FOREIGN_CPUS = 0.25
#: Share of the wall time of all processors taken by the hypervisor.
MOST_STEAL = 0.02
#: Interquartile range over median of one point: more is a wide one.
MOST_SPREAD = 0.25
#: Share of points that may be wide: where a cache ends, which physical pages were got decides on
#: hit or miss, so a few points of a good curve are wide by nature.
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
    series: int = 1  # that were timed


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
    """Watches the machine during one series of measurements, from its construction on.

    ``kernel_works``: the kernel works for the measurement meanwhile (write-back of a file), so what
    others did with the processors cannot be told from it.
    """

    name: str
    kernel_works: bool = False
    _start: _Accounts = field(default_factory=_accounts)
    _cpu_ns: int = 0
    _wall_ns: int = 0
    _switches: int = 0
    _spreads: dict[str, float] = field(default_factory=dict)

    def threads(self, usages: Sequence[Usage]) -> None:
        """Count timed loops: ``cpu_ns``, ``wall_ns``, ``involuntary_switches`` of each thread."""
        for usage in usages:
            self._cpu_ns += usage["cpu_ns"]
            self._wall_ns += usage["wall_ns"]
            self._switches += usage["involuntary_switches"]

    def spread(self, point: str, spread: float) -> None:
        """Note the spread of one finished point of at least five repeats."""
        self._spreads[point] = spread

    def verdict(self) -> Verdict:
        """Judge everything seen so far."""
        now = _accounts()
        wall = max(now.wall_s - self._start.wall_s, 1e-9)
        own = now.own_s - self._start.own_s
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
        if foreign > MOST_FOREIGN_CPUS:
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
    """The verdicts of all series of a run: noisy if one is, however calm the rest was."""

    _verdicts: list[Verdict] = field(default_factory=list)

    def judge(self, watch: Watch) -> None:
        """Take the verdict on a finished series."""
        self._verdicts.append(watch.verdict())

    def verdict(self) -> Verdict:
        """The worst of every kind of evidence, and all reasons."""
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
