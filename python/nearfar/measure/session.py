"""The measurement session: shared context of all measurements, and the loop that repeats them.

A measurement is a *plan*: a small picklable value whose ``epoch(seed)`` maps fresh buffers,
measures each point of its grid a few times in an interleaved order, and releases everything. The
session repeats epochs until the medians are precise enough or the time is up. Every fifth epoch
runs in a fresh process. If six epochs do not fit into the time, the plan drops points of its grid.
Only an ``Effort`` with ``max_s`` may end with fewer than six epochs, and then after at least three.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np

from nearfar.errors import MachineError
from nearfar.measure.progress import Progress
from nearfar.measure.tiers import origin_of
from nearfar.noise import MIN_CPU_SHARE, Lap, NoiseMeter, Watch, is_calm_now
from nearfar.records.figures import MIN_REPEATS, figure_fields
from nearfar.stats import Estimate, enough, median

if TYPE_CHECKING:
    from nearfar._native import Usage

#: Minimum number of epochs, and so of fresh mappings of each point.
MIN_EPOCHS = MIN_REPEATS
MAX_EPOCHS = 40
#: Minimum if more epochs would exceed ``Effort.max_s``.
FEWEST_EPOCHS = 3
#: Minimum number of epochs for the spread of a point to count as evidence of a disturbance.
MIN_TO_JUDGE = 5
#: Target half-width of the interval of each median, as a fraction of the median.
TOLERANCE = 0.02

Key = TypeVar("Key", bound=Hashable)


@dataclass
class Samples(Generic[Key]):
    """The values of one epoch, or those of several epochs after ``gather``.

    ``gather`` reduces the repeats of an epoch to their median. Repeats on the same pages are not
    independent; used one by one they would make intervals too narrow.
    """

    #: Values by grid point: the repeats of one epoch; after ``gather``, one value per epoch.
    series: dict[Key, list[float]] = field(default_factory=dict)
    #: After ``gather``: all repeats of all epochs by grid point.
    raw: dict[Key, list[float]] = field(default_factory=dict)
    #: A second figure of each grid point, such as its page faults. Lists are as in ``series``.
    companions: dict[Key, list[float]] = field(default_factory=dict)
    #: Largest relative error of the results that the epochs checked.
    worst_error: float = 0.0
    #: CPU and wall time of every timed thread.
    usages: list[Usage] = field(default_factory=list)
    #: Other results, one entry per epoch. Only the plan reads them.
    extras: list[Any] = field(default_factory=list)
    #: Usages by grid point: of each repeat; after ``gather``, of the repeats used in each epoch.
    accounts: dict[Key, list[list[Usage]]] = field(default_factory=dict)
    #: After ``gather``: the usages of the repeats that are used, for each epoch.
    kept: list[list[Usage]] = field(default_factory=list)

    def add(self, key: Key, value: float, usages: Sequence[Usage]) -> None:
        """Add one repeat of a grid point, with the usages of its timed threads."""
        self.series.setdefault(key, []).append(value)
        self.usages.extend(usages)
        self.accounts.setdefault(key, []).append(list(usages))

    def gather(self, epoch: Samples[Key]) -> None:
        """Add another epoch.

        Ignores repeats of a point whose threads were preempted, unless all of its repeats were.
        """
        dropped: set[int] = set()
        for key, values in epoch.series.items():
            accounts = epoch.accounts.get(key, [])
            whole = [i for i, each in enumerate(accounts) if cpu_share(each) >= MIN_CPU_SHARE]
            if len(accounts) == len(values) and 0 < len(whole) < len(values):
                gone = set(range(len(values))) - set(whole)
                dropped |= {id(usage) for i in gone for usage in accounts[i]}
                values, accounts = [values[i] for i in whole], [accounts[i] for i in whole]
            self.accounts.setdefault(key, []).append([u for each in accounts for u in each])
            self.series.setdefault(key, []).append(float(np.median(values)))
            self.raw.setdefault(key, []).extend(epoch.series[key])
        for key, values in epoch.companions.items():
            self.companions.setdefault(key, []).append(float(np.median(values)))
        self.worst_error = max(self.worst_error, epoch.worst_error)
        self.kept.append([usage for usage in epoch.usages if id(usage) not in dropped])
        self.usages.extend(epoch.usages)
        self.extras.extend(epoch.extras)

    def of(self, key: Key) -> list[float]:
        """The values of a point for statistics: one per epoch, or all repeats of a single epoch."""
        values = self.series[key]
        return values if len(values) > 1 else self.raw[key]

    def keep(self, keys: Collection[Key]) -> None:
        """Remove all points except these."""
        for table in (self.series, self.raw, self.companions, self.accounts):
            for key in [key for key in table if key not in keys]:
                del table[key]

    def keep_epochs(self, epochs: Sequence[int]) -> bool:
        """Remove all epochs except these from all points; ratios need the same epochs in each.

        Returns False, and removes nothing, unless each point has a value in each epoch.
        """
        lengths = {len(v) for v in (*self.series.values(), *self.companions.values())}
        if lengths != {len(self.kept)}:
            return False
        for table in (self.series, self.companions):
            for key, values in table.items():
                table[key] = [values[epoch] for epoch in epochs]
        for key, accounts in self.accounts.items():
            self.accounts[key] = [accounts[epoch] for epoch in epochs if epoch < len(accounts)]
        self.kept = [self.kept[epoch] for epoch in epochs]
        return True


def cpu_share(usages: Sequence[Usage]) -> float:
    """CPU time of timed threads over their wall time; 1 without usages."""
    wall_ns = sum(usage["wall_ns"] for usage in usages)
    return sum(usage["cpu_ns"] for usage in usages) / wall_ns if wall_ns else 1.0


class Plan(Protocol[Key]):
    """A measurement that can be repeated. Implementations are frozen dataclasses, and picklable."""

    @property
    def grid(self) -> Sequence[Key]:
        """The points, in the order of the report."""

    def epoch(self, seed: int) -> Samples[Key]:
        """Measure each point at least once on freshly mapped buffers."""

    def smaller(self) -> Self | None:
        """The same plan with fewer points, or None if it cannot be reduced further."""


@dataclass(frozen=True)
class Effort:
    """Length of a measurement: a fixed number of epochs, or a budget of time."""

    #: Time in which the medians should become precise enough. At least six epochs run, even if they
    #: take longer.
    budget_s: float
    #: A fixed number of epochs; None: as many as precision requires and the budget allows.
    epochs: int | None = None
    #: Epochs that run before the first one, and are not used.
    warmup: int = 0
    #: Whether every fifth epoch runs in a fresh process, which takes half a second to start.
    apart: bool = True
    #: Time beyond the budget for epochs that replace disturbed ones.
    patience_s: float = 0.0
    #: If six epochs would take longer than this, fewer run, but at least three; figures of fewer
    #: than six epochs have no interval.
    max_s: float = math.inf


@dataclass
class Session:
    """The context that all measurements of one run share."""

    machine_id: str
    seed: int
    progress: Progress
    noise: NoiseMeter = field(default_factory=NoiseMeter)
    #: Receives the raw values of each point: name of the series, unit, values.
    keep_samples: Callable[[str, str, Sequence[float]], None] = lambda _series, _unit, _values: None
    #: Start and width of the next series on the progress bar, as fractions of the whole run.
    span: tuple[float, float] = (0.0, 1.0)
    #: Key of the section of the record that is measured; empty for what belongs to none.
    section: str = ""

    def figures(
        self, *tiers: str, persistent: bool = False, **estimates: Estimate
    ) -> dict[str, Any]:
        """Values, intervals and provenance of figures measured on these tiers.

        ``persistent``: whether the figures are persistence costs.
        """
        origin, note = origin_of(*tiers, persistent=persistent)
        return figure_fields(origin, estimates, seed=self.seed, machine=self.machine_id, note=note)

    def repeat(
        self,
        name: str,
        unit: str,
        plan: Plan[Key],
        effort: Effort,
        *,
        judge_spread: bool = True,
        kernel_works: bool = False,
        label: Callable[[Key], str] = str,
        edges: Callable[[dict[Key, float]], Collection[Key]] = lambda _medians: (),
    ) -> tuple[Samples[Key], list[Key]]:
        """Repeat a plan. Returns its samples, and the points dropped for lack of time.

        Disturbed epochs are repeated within the effort's time. They are removed from the samples if
        at least six epochs were calm.

        - ``judge_spread``: whether a point that spreads widely is evidence of a disturbance
        - ``kernel_works``: see ``noise.Watch``
        - ``label``: formats a point for output
        - ``edges``: returns, given the medians, the points at the edge of a cache, whose spread is
          not evidence of a disturbance
        """
        wanted = list(plan.grid)
        started = time.monotonic()
        for _ in range(effort.warmup):
            plan.epoch(self.seed)
        watch = Watch(name, kernel_works, self.section)
        laps: list[Lap] = []
        samples: Samples[Key] = Samples()
        began = time.monotonic()
        samples.gather(plan.epoch(self.seed))
        laps.append(watch.lap())
        plan = self._fitted(plan, time.monotonic() - began, effort)
        samples.keep(set(plan.grid))
        epochs = 1
        while self._continues(samples, laps, time.monotonic() - started, effort):
            self._report(name, epochs, started, effort)
            seed = self.seed + epochs
            apart = effort.apart and epochs % 5 == 1
            samples.gather(_run_apart(plan.epoch, seed) if apart else plan.epoch(seed))
            laps.append(watch.lap())
            epochs += 1
        if effort.epochs is None:
            _prefer_calm(samples, laps, watch)
        watch.threads([usage for epoch in samples.kept for usage in epoch])
        on_edge = edges({key: float(np.median(v)) for key, v in samples.series.items()})
        for key in samples.series:
            self.keep_samples(f"{name}/{label(key)}", unit, samples.raw[key])
        _judge_points(watch, samples, label, on_edge, judge_spread=judge_spread)
        self.noise.judge(watch)
        return samples, [key for key in wanted if key not in samples.series]

    def _fitted(self, plan: Plan[Key], took: float, effort: Effort) -> Plan[Key]:
        """Drop points until the minimum number of epochs fits into the budget.

        An epoch is assumed to take time in proportion to the size of the grid.
        """
        if effort.epochs is not None:
            return plan
        full = len(plan.grid)
        while took * MIN_EPOCHS * len(plan.grid) / full > effort.budget_s:
            smaller = plan.smaller()
            if smaller is None:
                break
            plan = smaller
        return plan

    def _continues(
        self, samples: Samples[Key], laps: Sequence[Lap], spent_s: float, effort: Effort
    ) -> bool:
        """Whether another epoch should run.

        It should if the medians are not precise enough. It also should if fewer than six epochs
        were calm: then this waits for a calm moment, while the time allows.
        """
        epochs = len(laps)
        if not self._done(samples, epochs, spent_s, effort):
            return True
        if effort.epochs is not None or len(_calm(samples, laps)) >= MIN_EPOCHS:
            return False
        one_more = spent_s / epochs
        end = time.monotonic() + effort.budget_s + effort.patience_s - spent_s - one_more
        while time.monotonic() < end and epochs < MAX_EPOCHS:
            if is_calm_now():
                return True
        return False

    def _done(self, samples: Samples[Key], epochs: int, spent_s: float, effort: Effort) -> bool:
        if effort.epochs is not None:
            return epochs >= effort.epochs
        one_more = spent_s * (epochs + 1) / epochs
        if epochs < MIN_EPOCHS:
            return epochs >= FEWEST_EPOCHS and one_more > effort.max_s
        if epochs >= MAX_EPOCHS or one_more > effort.budget_s:
            return True
        return all(enough(v, TOLERANCE) for v in samples.series.values())

    def _report(self, name: str, epochs: int, started: float, effort: Effort) -> None:
        if effort.epochs is not None:
            share = epochs / effort.epochs
        else:
            share = min((time.monotonic() - started) / effort.budget_s, 1.0)
        base, width = self.span
        self.progress.step(name, base + width * share)


def _calm(samples: Samples[Any], laps: Sequence[Lap]) -> list[int]:
    """Epochs that no other work disturbed."""
    return [
        epoch
        for epoch, lap in enumerate(laps)
        if lap.is_calm() and cpu_share(samples.kept[epoch]) >= MIN_CPU_SHARE
    ]


def _prefer_calm(samples: Samples[Any], laps: Sequence[Lap], watch: Watch) -> None:
    """Remove disturbed epochs from the samples and from the verdict if at least six were calm."""
    calm = _calm(samples, laps)
    if len(calm) < MIN_EPOCHS or len(calm) == len(laps):
        watch.only(laps)
    elif samples.keep_epochs(calm):
        watch.only([laps[epoch] for epoch in calm])
        watch.set_aside = len(laps) - len(calm)


def _run_apart(epoch: Callable[[int], Samples[Key]], seed: int) -> Samples[Key]:
    """Run one epoch in a fresh process, which has other addresses and other physical pages."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_epoch, args=(sender, epoch, seed), daemon=True)
    # The child inherits the blocked SIGINT, so that only the parent handles Ctrl-C. A signal that
    # arrives meanwhile is delivered to the parent when it unblocks SIGINT.
    listening = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        child.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, listening)
    sender.close()
    try:
        outcome: Samples[Key] | Exception = receiver.recv()
    except EOFError:
        raise MachineError(
            "a measuring process was killed", "see dmesg for the reason; try a smaller --size"
        ) from None
    finally:
        child.terminate()
        child.join()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _send_epoch(sender: Connection, epoch: Callable[[int], Samples[Key]], seed: int) -> None:
    try:
        sender.send(epoch(seed))
    except Exception as error:
        sender.send(error)
    sender.close()


def _judge_points(
    watch: Watch,
    samples: Samples[Key],
    label: Callable[[Key], str],
    on_edge: Collection[Key],
    *,
    judge_spread: bool,
) -> None:
    """Report the points to the watch, with their spread if that is evidence of a disturbance."""
    for key, values in samples.series.items():
        few = len(values) < MIN_TO_JUDGE
        watch.point(
            label(key),
            median(values).spread if judge_spread and not few else None,
            cpu_share([usage for epoch in samples.accounts.get(key, []) for usage in epoch]),
            at_edge=key in on_edge,
            few=few,
        )
