"""The verdict on noise: evidence that other work used the machine during a measurement.

Another program that uses memory all the time can halve a bandwidth in all repeats alike. A small
spread is therefore no evidence of an undisturbed measurement. The evidence comes from the kernel:
CPU time of timed threads over their wall time, involuntary context switches, steal time, and CPU
time of other processes. Each series is judged separately, so that a short disturbance is not
averaged out. Each figure has its own verdict: steady, disturbed or unusable.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from nearfar._native import Usage

Reliability = Literal["steady", "disturbed", "unusable"]
#: From the best to the worst.
RELIABILITIES: tuple[Reliability, ...] = ("steady", "disturbed", "unusable")
#: A verdict, and why.
Reason = tuple[Reliability, str]

#: A timed thread whose CPU time is below this fraction of its wall time was preempted.
MIN_CPU_SHARE = 0.95
#: A figure is unusable if its threads ran for less than this fraction of their wall time.
MIN_USABLE_CPU_SHARE = 0.7
#: A measurement is disturbed if other processes used more CPUs than this, averaged over its time.
#: On a large machine, where daemons use more, the limit is a fraction of all CPUs.
MAX_FOREIGN_CPUS = 0.25
MAX_FOREIGN_SHARE = 0.02
#: A measurement is disturbed if the hypervisor took more than this fraction of the CPUs' time.
MAX_STEAL = 0.02
#: A point is disturbed, or unusable, if its spread is larger: interquartile range over median.
MAX_SPREAD = 0.25
UNUSABLE_SPREAD = 1.0
#: A series is disturbed if more than this fraction of its points spread widely. In a good curve, a
#: few points spread widely: near a cache's size, the physical pages decide how many loads miss.
MAX_WIDE_POINTS = 0.2
#: Reason of a figure that is steady although its repeats spread widely.
AT_AN_EDGE = "edge of a cache: the physical pages decide between hit and miss"
#: Reason of a figure that nothing disturbed, but whose repeats cannot show how far it varies.
TOO_FEW_TO_JUDGE = "too few repeats to judge their spread"
#: Resolution of the kernel's CPU times: smaller differences are ignored.
_TICK_S = 0.02


@dataclass(frozen=True)
class FigureVerdict:
    """The reliability of one figure, with the reason."""

    figure: str
    verdict: Reliability
    reason: str
    spread: float | None


@dataclass(frozen=True)
class SeriesVerdict:
    """The reliability of a series, and of each of its figures."""

    section: str
    series: str
    verdict: Reliability
    reasons: list[str]
    set_aside: int
    figures: list[FigureVerdict]


@dataclass(frozen=True)
class Verdict:
    """Whether one or more series were disturbed, with the reasons."""

    noisy: bool
    reasons: list[str]
    foreign_cpus: float
    steal: float
    least_cpu_share: float
    worst_spread: float
    series: int = 1  # number of timed series
    judged: list[SeriesVerdict] = field(default_factory=list)


def max_foreign_cpus() -> float:
    """Number of CPUs that other processes may use on this machine during a measurement."""
    return max(MAX_FOREIGN_CPUS, MAX_FOREIGN_SHARE * (os.cpu_count() or 1))


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


@dataclass(frozen=True)
class Lap:
    """CPU time used by other processes and by the hypervisor in a part of a series (an epoch)."""

    wall_s: float
    foreign_s: float
    steal_s: float

    def is_calm(self) -> bool:
        """Whether neither other processes nor the hypervisor disturbed this part."""
        foreign_s = self.foreign_s - _TICK_S
        steal_s = self.steal_s - _TICK_S
        return (
            foreign_s <= max_foreign_cpus() * self.wall_s
            and steal_s <= MAX_STEAL * self.wall_s * _cpus()
        )


def _cpus() -> int:
    return os.cpu_count() or 1


def _lap(start: _Accounts, end: _Accounts, observed_s: float = 0.0) -> Lap:
    own_s = end.own_s - start.own_s + observed_s
    return Lap(
        max(end.wall_s - start.wall_s, 1e-9),
        max(end.busy_s - start.busy_s - own_s, 0.0),
        end.steal_s - start.steal_s,
    )


def is_calm_now(moment_s: float = 0.2) -> bool:
    """Sleep for ``moment_s``; return whether no other process disturbed the machine meanwhile."""
    start = _accounts()
    time.sleep(moment_s)
    return _lap(start, _accounts()).is_calm()


@dataclass(frozen=True)
class _Point:
    """One finished point; see ``Watch.point``."""

    spread: float | None
    cpu_share: float
    at_edge: bool
    few: bool


@dataclass
class Watch:
    """Watches the machine during one series of measurements, starting at its construction.

    - ``kernel_works``: whether kernel threads work for the measurement (write-back of a file).
      Their CPU time cannot be distinguished from that of other processes, which is not judged then.
    - ``section``: key of the section in the record
    - ``set_aside``: number of disturbed epochs that are not used, because enough were calm
    """

    name: str
    kernel_works: bool = False
    section: str = ""
    set_aside: int = 0
    _start: _Accounts = field(default_factory=_accounts)
    _lap_start: _Accounts = field(default_factory=_accounts)
    _laps: list[Lap] = field(default_factory=list)
    _cpu_ns: int = 0
    _wall_ns: int = 0
    _switches: int = 0
    _observed_s: float = 0.0
    _points: dict[str, _Point] = field(default_factory=dict)

    def threads(self, usages: Sequence[Usage]) -> None:
        """Add the usages of timed threads: CPU time, wall time and involuntary switches."""
        for usage in usages:
            self._cpu_ns += usage["cpu_ns"]
            self._wall_ns += usage["wall_ns"]
            self._switches += usage["involuntary_switches"]

    def observed(self, cpu_s: float) -> None:
        """Add CPU time of measured processes that are not children of this process."""
        self._observed_s += cpu_s

    def lap(self) -> Lap:
        """Return the part of the series since the previous lap."""
        now = _accounts()
        lap, self._lap_start = _lap(self._lap_start, now), now
        return Lap(lap.wall_s, 0.0, lap.steal_s) if self.kernel_works else lap

    def only(self, laps: Sequence[Lap]) -> None:
        """Judge only these parts of the time; the epochs in all other parts are not used."""
        self._laps = list(laps)

    def point(
        self,
        name: str,
        spread: float | None,
        cpu_share: float = 1.0,
        *,
        at_edge: bool = False,
        few: bool = False,
    ) -> None:
        """Add one finished point.

        - ``spread``: of at least five repeats; None if there are fewer, or if it is not judged
        - ``cpu_share``: CPU time of its threads over their wall time
        - ``at_edge``: whether the point is at the edge of a cache, where repeats spread on an idle
          machine, too
        - ``few``: whether it has too few repeats to judge their spread
        """
        self._points[name] = _Point(spread, cpu_share, at_edge, few)

    def spread(self, point: str, spread: float) -> None:
        """Add the spread of one finished point with at least five repeats."""
        self.point(point, spread)

    def verdict(self) -> Verdict:
        """Judge all evidence so far."""
        laps = self._laps or [_lap(self._start, _accounts(), self._observed_s)]
        wall = sum(lap.wall_s for lap in laps)
        foreign = 0.0 if self.kernel_works else sum(lap.foreign_s for lap in laps) / wall
        steal = sum(lap.steal_s for lap in laps) / wall / _cpus()
        share = self._cpu_ns / self._wall_ns if self._wall_ns else 1.0
        spreads = [point.spread or 0.0 for point in self._points.values() if not point.at_edge]
        figures = list(self._figures(foreign, steal))
        found = _worst_first(self._reasons(share, foreign, steal, figures))
        texts = [text for _, text in found]
        reasons = [f"{self.name} – {text}" for text in texts]
        verdict = found[0][0] if found else "steady"
        judged = SeriesVerdict(
            self.section or self.name, self.name, verdict, texts, self.set_aside, figures
        )
        worst = max(spreads, default=0.0)
        return Verdict(bool(reasons), reasons, foreign, steal, share, worst, judged=[judged])

    def _reasons(
        self, share: float, foreign: float, steal: float, figures: Sequence[FigureVerdict]
    ) -> Iterator[Reason]:
        if share < MIN_CPU_SHARE:
            yield (
                "unusable" if share < MIN_USABLE_CPU_SHARE else "disturbed",
                f"timed threads ran only {share:.0%} of their time "
                f"({self._switches} involuntary switches)",
            )
        if machine := _by_machine(foreign, steal):
            yield "disturbed", machine
        unusable = [figure for figure in figures if figure.verdict == "unusable"]
        if 2 * len(unusable) > len(figures):
            worst = max(unusable, key=lambda figure: figure.spread or 0.0)
            yield (
                "unusable",
                f"{len(unusable)} of {len(figures)} points are unusable "
                f"({worst.figure}: {worst.reason})",
            )
        yield from self._wide_points()

    def _wide_points(self) -> Iterator[Reason]:
        wide = {
            name: point.spread
            for name, point in self._points.items()
            if point.spread is not None and point.spread > MAX_SPREAD and not point.at_edge
        }
        if len(wide) > MAX_WIDE_POINTS * len(self._points):
            worst = max(wide, key=lambda point: wide[point])
            yield (
                "disturbed",
                f"{len(wide)} of {len(self._points)} points spread by over {MAX_SPREAD:.0%} "
                f"({worst} by {wide[worst]:.0%})",
            )

    def _figures(self, foreign: float, steal: float) -> Iterator[FigureVerdict]:
        machine = _by_machine(foreign, steal)
        for name, point in self._points.items():
            own, reason = _worst_first(_of_point(point, machine))[0]
            yield FigureVerdict(name, own, reason, point.spread)


def _by_machine(foreign: float, steal: float) -> str:
    """Return the disturbance that applies to all figures of a series; empty if there is none."""
    if foreign > max_foreign_cpus():
        return f"other processes used {foreign:.2f} of {_cpus()} CPUs"
    if steal > MAX_STEAL:
        return f"the hypervisor took {steal:.1%} of the CPUs' time"
    return ""


def _of_point(point: _Point, machine: str) -> Iterator[Reason]:
    """Yield the verdicts on one figure: by its threads, its repeats, and the machine."""
    if point.cpu_share < MIN_CPU_SHARE:
        reason = f"its threads ran only {point.cpu_share:.0%} of their time"
        yield "unusable" if point.cpu_share < MIN_USABLE_CPU_SHARE else "disturbed", reason
    wide = point.spread is not None and point.spread > MAX_SPREAD
    if wide and not point.at_edge:
        reason = f"its repeats spread by {point.spread:.0%}"
        yield "unusable" if (point.spread or 0.0) > UNUSABLE_SPREAD else "disturbed", reason
    if machine:
        yield "disturbed", machine
    yield "steady", AT_AN_EDGE if wide else TOO_FEW_TO_JUDGE if point.few else ""


def _worst_first(found: Iterable[Reason]) -> list[Reason]:
    """Return reasons in the order of their verdicts, the one that decides first."""
    return sorted(found, key=lambda reason: -RELIABILITIES.index(reason[0]))


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
            judged=[series for v in seen for series in v.judged],
        )
