"""The measurement session: shared context of all measurements, and the loop that repeats them.

A measurement is a *plan*: a small picklable value whose ``epoch(seed)`` maps fresh buffers,
measures each point of its grid a few times in an interleaved order, and releases everything. The
session repeats epochs, every fifth of them in a fresh process, until the medians are precise enough
or the time is up, but at least six times. A plan that exceeds its time drops points of its grid,
not repeats.
"""

from __future__ import annotations

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
from nearfar.noise import NoiseMeter, Watch
from nearfar.records.shape import LEAST_REPEATS, quantities
from nearfar.stats import Estimate, enough, median

if TYPE_CHECKING:
    from nearfar._native import Usage

#: Minimum number of fresh mappings of each point.
LEAST_EPOCHS = LEAST_REPEATS
MOST_EPOCHS = 40
#: Repeats from which on the spread of a point counts as evidence of a disturbance.
LEAST_TO_JUDGE = 5
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

    def add(self, key: Key, value: float, usages: Sequence[Usage]) -> None:
        """Add one repeat."""
        self.series.setdefault(key, []).append(value)
        self.usages.extend(usages)

    def gather(self, epoch: Samples[Key]) -> None:
        """Add another epoch."""
        for key, values in epoch.series.items():
            self.series.setdefault(key, []).append(float(np.median(values)))
            self.raw.setdefault(key, []).extend(values)
        for key, values in epoch.counts.items():
            self.counts.setdefault(key, []).append(float(np.median(values)))
        self.worst_error = max(self.worst_error, epoch.worst_error)
        self.usages.extend(epoch.usages)
        self.extras.extend(epoch.extras)

    def of(self, key: Key) -> list[float]:
        """Values of a point for statistics: one an epoch; for a single epoch, its repeats."""
        values = self.series[key]
        return values if len(values) > 1 else self.raw[key]

    def keep(self, keys: Collection[Key]) -> None:
        """Remove all other points."""
        for table in (self.series, self.raw, self.counts):
            for key in [key for key in table if key not in keys]:
                del table[key]


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

    ``apart``: every fifth epoch runs in a fresh process, which takes half a second to start.
    """

    budget_s: float
    epochs: int | None = None
    warmup: int = 0
    apart: bool = True


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
    ) -> tuple[Samples[Key], list[Key]]:
        """Repeat a plan. Returns its samples, and the points dropped for lack of time.

        ``judge_spread``: whether wide points count as evidence of a disturbance; ``kernel_works``:
        see ``noise.Watch``; ``label``: formats a point for output.
        """
        wanted = list(plan.grid)
        started = time.monotonic()
        for _ in range(effort.warmup):
            plan.epoch(self.seed)
        watch = Watch(name, kernel_works)
        samples: Samples[Key] = Samples()
        began = time.monotonic()
        samples.gather(plan.epoch(self.seed))
        plan = self._fitted(plan, time.monotonic() - began, effort)
        samples.keep(set(plan.grid))
        epochs = 1
        while not self._done(samples, epochs, time.monotonic() - started, effort):
            self._tell(name, epochs, started, effort)
            seed = self.seed + epochs
            apart = effort.apart and epochs % 5 == 1
            samples.gather(_run_apart(plan.epoch, seed) if apart else plan.epoch(seed))
            epochs += 1
        watch.threads(samples.usages)
        for key, values in samples.series.items():
            self.keep_samples(f"{name}/{label(key)}", unit, samples.raw[key])
            if judge_spread and len(values) >= LEAST_TO_JUDGE:
                watch.spread(label(key), median(values).spread)
        self.noise.judge(watch)
        return samples, [key for key in wanted if key not in samples.series]

    def _fitted(self, plan: Plan[Key], took: float, effort: Effort) -> Plan[Key]:
        """Drop points until the minimum number of epochs fits the budget, judged by grid size."""
        if effort.epochs is not None:
            return plan
        full = len(plan.grid)
        while took * LEAST_EPOCHS * len(plan.grid) / full > effort.budget_s:
            smaller = plan.smaller()
            if smaller is None:
                break
            plan = smaller
        return plan

    def _done(self, samples: Samples[Key], epochs: int, spent_s: float, effort: Effort) -> bool:
        if effort.epochs is not None:
            return epochs >= effort.epochs
        if epochs < LEAST_EPOCHS:
            return False
        one_more = spent_s * (epochs + 1) / epochs
        if epochs >= MOST_EPOCHS or one_more > effort.budget_s:
            return True
        return all(enough(v, TOLERANCE) for v in samples.series.values())

    def _tell(self, name: str, epochs: int, started: float, effort: Effort) -> None:
        if effort.epochs is not None:
            share = epochs / effort.epochs
        else:
            share = min((time.monotonic() - started) / effort.budget_s, 1.0)
        base, width = self.span
        self.progress.step(name, base + width * share)


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
