"""The measurement session: shared context of all measurements, and the loop that repeats them.

A measurement is a *plan*: a small picklable value whose ``epoch(seed)`` maps fresh buffers,
measures each point of its grid a few times in an interleaved order, and releases everything. The
session repeats epochs, every fifth of them in a fresh process, until the medians are precise enough
or the time is up, but at least six times. A plan that exceeds its time drops points of its grid,
not repeats.
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
from nearfar.records.shape import MIN_REPEATS, quantities
from nearfar.stats import Estimate, enough, median

if TYPE_CHECKING:
    from nearfar._native import Usage

#: Minimum number of fresh mappings of each point.
MIN_EPOCHS = MIN_REPEATS
MAX_EPOCHS = 40
#: Minimum if the time is up.
FEWEST_EPOCHS = 3
#: Repeats from which on the spread of a point counts as evidence of a disturbance.
MIN_TO_JUDGE = 5
#: Target half-width of the interval of each median, relative.
TOLERANCE = 0.02

Key = TypeVar("Key", bound=Hashable)


@dataclass
class Samples(Generic[Key]):
    """The result of one or more epochs.

    ``series``: repeats by grid point; ``counts``: a count for each repeat (page faults);
    ``usages``: the accounts of every timed thread; ``worst_error``: of checked results; ``extras``:
    side results, one entry an epoch, in a format that only the plan knows. Gathered over epochs,
    ``series`` holds one value an epoch, the median of its repeats: repeats on the same pages are
    not independent, and would make intervals too narrow. ``raw`` holds all repeats.
    """

    series: dict[Key, list[float]] = field(default_factory=dict)
    raw: dict[Key, list[float]] = field(default_factory=dict)
    counts: dict[Key, list[float]] = field(default_factory=dict)
    worst_error: float = 0.0
    usages: list[Usage] = field(default_factory=list)
    extras: list[Any] = field(default_factory=list)
    #: accounts of each repeat by grid point; gathered, those of the repeats that count, by epoch
    accounts: dict[Key, list[list[Usage]]] = field(default_factory=dict)
    kept: list[list[Usage]] = field(default_factory=list)

    def add(self, key: Key, value: float, usages: Sequence[Usage]) -> None:
        """Add one repeat."""
        self.series.setdefault(key, []).append(value)
        self.usages.extend(usages)
        self.accounts.setdefault(key, []).append(list(usages))

    def gather(self, epoch: Samples[Key]) -> None:
        """Add another epoch. Repeats whose threads were preempted count only if all were."""
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
        for key, values in epoch.counts.items():
            self.counts.setdefault(key, []).append(float(np.median(values)))
        self.worst_error = max(self.worst_error, epoch.worst_error)
        self.kept.append([usage for usage in epoch.usages if id(usage) not in dropped])
        self.usages.extend(epoch.usages)
        self.extras.extend(epoch.extras)

    def of(self, key: Key) -> list[float]:
        """Values of a point for statistics: one an epoch; for a single epoch, its repeats."""
        values = self.series[key]
        return values if len(values) > 1 else self.raw[key]

    def keep(self, keys: Collection[Key]) -> None:
        """Remove all other points."""
        for table in (self.series, self.raw, self.counts, self.accounts):
            for key in [key for key in table if key not in keys]:
                del table[key]

    def keep_epochs(self, epochs: Sequence[int]) -> bool:
        """Remove all other epochs from the statistics, of all points, so that pairs stay pairs.

        Returns whether that was possible: each point must have a value in each epoch.
        """
        lengths = {len(v) for v in (*self.series.values(), *self.counts.values())}
        if lengths != {len(self.kept)}:
            return False
        for table in (self.series, self.counts):
            for key, values in table.items():
                table[key] = [values[epoch] for epoch in epochs]
        for key, accounts in self.accounts.items():
            self.accounts[key] = [accounts[epoch] for epoch in epochs if epoch < len(accounts)]
        self.kept = [self.kept[epoch] for epoch in epochs]
        return True


def cpu_share(usages: Sequence[Usage]) -> float:
    """CPU time over wall time of timed threads; 1 if none was accounted for."""
    wall_ns = sum(usage["wall_ns"] for usage in usages)
    return sum(usage["cpu_ns"] for usage in usages) / wall_ns if wall_ns else 1.0


class Plan(Protocol[Key]):
    """A measurement that can be repeated. Implementations are frozen, picklable dataclasses."""

    @property
    def grid(self) -> Sequence[Key]:
        """The points, in the order of the report."""

    def epoch(self, seed: int) -> Samples[Key]:
        """Measure each point at least once on freshly mapped buffers."""

    def smaller(self) -> Self | None:
        """The same plan with fewer points, or None if it cannot be reduced further."""


@dataclass(frozen=True)
class Effort:
    """How long to measure: a fixed number of epochs, or until precise enough within the budget.

    ``apart``: every fifth epoch runs in a fresh process, which takes half a second to start;
    ``patience_s``: beyond the budget, for calm epochs in place of disturbed ones; ``max_s``: ends
    after three epochs instead of six if more would exceed it; figures have no interval then.
    """

    budget_s: float
    epochs: int | None = None
    warmup: int = 0
    apart: bool = True
    patience_s: float = 0.0
    max_s: float = math.inf


@dataclass
class Session:
    """One run of one verb."""

    machine_id: str
    seed: int
    progress: Progress
    noise: NoiseMeter = field(default_factory=NoiseMeter)
    keep_samples: Callable[[str, str, Sequence[float]], None] = lambda _series, _unit, _values: None
    #: Start of the next series on the progress bar of the whole run, and its width (0 to 1).
    span: tuple[float, float] = (0.0, 1.0)
    #: Key of the section that is measured, where a run has several.
    section: str = ""

    def figures(
        self, *tiers: str, persistent: bool = False, **estimates: Estimate
    ) -> dict[str, Any]:
        """Values, intervals and provenance of figures measured on these tiers.

        ``persistent``: they measure a persistence cost.
        """
        origin, note = origin_of(*tiers, persistent=persistent)
        return quantities(origin, estimates, seed=self.seed, machine=self.machine_id, note=note)

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

        ``judge_spread``: whether wide points count as evidence of a disturbance; ``kernel_works``:
        see ``noise.Watch``; ``label``: formats a point for output; ``edges``: points whose spread
        is the memory's, by the medians. Epochs that other work disturbed are repeated within the
        effort's time, and do not count if there are enough calm ones.
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
        for key, values in samples.series.items():
            self.keep_samples(f"{name}/{label(key)}", unit, samples.raw[key])
            judged = judge_spread and len(values) >= MIN_TO_JUDGE
            watch.point(
                label(key),
                median(values).spread if judged else None,
                cpu_share([usage for epoch in samples.accounts.get(key, []) for usage in epoch]),
                at_edge=key in on_edge,
            )
        self.noise.judge(watch)
        return samples, [key for key in wanted if key not in samples.series]

    def _fitted(self, plan: Plan[Key], took: float, effort: Effort) -> Plan[Key]:
        """Drop points until the minimum number of epochs fits the budget, judged by grid size."""
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
        """Whether another epoch follows: for precision, or, in a calm moment, for a calm one."""
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
    """Set disturbed epochs aside if there are enough calm ones."""
    calm = _calm(samples, laps)
    if len(calm) < MIN_EPOCHS or len(calm) == len(laps):
        watch.only(laps)
    elif samples.keep_epochs(calm):
        watch.only([laps[epoch] for epoch in calm])
        watch.set_aside = len(laps) - len(calm)


def _run_apart(epoch: Callable[[int], Samples[Key]], seed: int) -> Samples[Key]:
    """Run one epoch in a fresh process: other addresses, other physical pages."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_epoch, args=(sender, epoch, seed), daemon=True)
    # A child started with SIGINT blocked never gets one: Ctrl-C is handled by the parent, which
    # receives a pending one as soon as it unblocks the signal.
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
