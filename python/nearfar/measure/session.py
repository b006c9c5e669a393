"""What every measurement needs besides its own plan, and the loop that repeats it.

A measurement is a *plan*: a small picklable value whose ``epoch(seed)`` maps fresh buffers,
measures each point of its grid a few times in an interleaved order, and lets go of everything. The
session repeats epochs, every third of them in a fresh process, until the medians are known well
enough or the time is up, never fewer than it takes for five repeats of each point. A plan that is
too long for its time gives up points of its grid, not repeats.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from nearfar.errors import MachineError
from nearfar.measure.tiers import origin_of
from nearfar.noise import NoiseMeter
from nearfar.records.shape import quantities
from nearfar.stats import Estimate, enough, median

if TYPE_CHECKING:
    from nearfar._native import Usage

LEAST_REPEATS = 5
MOST_EPOCHS = 40
#: The interval of each median is wanted within this, relative.
TOLERANCE = 0.02

Key = TypeVar("Key", bound=Hashable)


class Progress(Protocol):
    """Told by long work how far it is."""

    def step(self, what: str, done: float) -> None:
        """Say what is being done, and the share of it that is done (0 to 1)."""

    def note(self, text: str) -> None:
        """Say one line that stays."""


@dataclass
class Samples(Generic[Key]):
    """What epochs yield.

    ``series``: repeats by grid point; ``counts``: what was counted beside each repeat (page
    faults); ``usages``: the accounts of every timed thread; ``worst_error``: of checked results.
    """

    series: dict[Key, list[float]] = field(default_factory=dict)
    counts: dict[Key, list[float]] = field(default_factory=dict)
    worst_error: float = 0.0
    usages: list[Usage] = field(default_factory=list)

    def add(self, key: Key, value: float, usages: Sequence[Usage]) -> None:
        """Note one repeat."""
        self.series.setdefault(key, []).append(value)
        self.usages.extend(usages)

    def extend(self, other: Samples[Key]) -> None:
        """Append the repeats of another epoch."""
        for key, values in other.series.items():
            self.series.setdefault(key, []).extend(values)
        for key, values in other.counts.items():
            self.counts.setdefault(key, []).extend(values)
        self.worst_error = max(self.worst_error, other.worst_error)
        self.usages.extend(other.usages)


class Plan(Protocol[Key]):
    """A measurement to be repeated. Implementations are frozen, picklable dataclasses."""

    @property
    def grid(self) -> Sequence[Key]:
        """The points, in the order they are reported."""

    def epoch(self, seed: int) -> Samples[Key]:
        """Measure each point at least once on freshly mapped buffers."""

    def smaller(self) -> Self | None:
        """The same plan with fewer points, or None if it has as few as make sense."""


@dataclass(frozen=True)
class Effort:
    """How long to measure: a fixed number of epochs, or until good enough within the budget."""

    budget_s: float
    epochs: int | None = None
    warmup: int = 0


@dataclass
class Session:
    """One run of one verb."""

    machine_id: str
    seed: int
    progress: Progress
    noise: NoiseMeter = field(default_factory=NoiseMeter)
    keep_samples: Callable[[str, str, Sequence[float]], None] = lambda _series, _unit, _values: None

    def figures(
        self, *tiers: str, persistent: bool = False, **estimates: Estimate
    ) -> dict[str, Any]:
        """Values, intervals and provenance of figures measured on these tiers.

        ``persistent``: they tell what it costs to make stores durable.
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
    ) -> tuple[Samples[Key], list[Key]]:
        """Repeat a plan. Returns its samples, and the points given up for lack of time.

        ``judge_spread``: whether a wide spread of a point counts towards the verdict "too noisy".
        """
        wanted = list(plan.grid)
        started = time.monotonic()
        samples = plan.epoch(self.seed)
        for _ in range(effort.warmup):
            samples = plan.epoch(self.seed)
        took = (time.monotonic() - started) / (1 + effort.warmup)
        plan = self._fitted(plan, samples, took, effort)
        kept = set(plan.grid)
        samples.series = {k: v for k, v in samples.series.items() if k in kept}
        epochs = 1
        while not self._done(samples, epochs, time.monotonic() - started, effort):
            self.progress.step(name, self._share(epochs, started, effort))
            seed = self.seed + epochs
            apart = epochs % 3 == 2
            samples.extend(_run_apart(plan.epoch, seed) if apart else plan.epoch(seed))
            epochs += 1
        self._note(name, unit, samples, judge_spread)
        return samples, [key for key in wanted if key not in kept]

    def _fitted(
        self, plan: Plan[Key], samples: Samples[Key], took: float, effort: Effort
    ) -> Plan[Key]:
        """Give up points until the least number of epochs fits the budget, judged by grid size."""
        if effort.epochs is not None:
            return plan
        least_epochs = LEAST_REPEATS / min(len(v) for v in samples.series.values())
        full = len(plan.grid)
        while took * least_epochs * len(plan.grid) / full > effort.budget_s:
            smaller = plan.smaller()
            if smaller is None:
                break
            plan = smaller
        return plan

    def _done(self, samples: Samples[Key], epochs: int, spent_s: float, effort: Effort) -> bool:
        if effort.epochs is not None:
            return epochs >= effort.epochs
        if min(len(v) for v in samples.series.values()) < LEAST_REPEATS:
            return False
        one_more = spent_s * (epochs + 1) / epochs
        if epochs >= MOST_EPOCHS or one_more > effort.budget_s:
            return True
        return all(enough(v, TOLERANCE, LEAST_REPEATS) for v in samples.series.values())

    def _share(self, epochs: int, started: float, effort: Effort) -> float:
        if effort.epochs is not None:
            return epochs / effort.epochs
        return min((time.monotonic() - started) / effort.budget_s, 1.0)

    def _note(self, name: str, unit: str, samples: Samples[Key], judge_spread: bool) -> None:
        self.noise.threads(samples.usages)
        for key, values in samples.series.items():
            self.keep_samples(f"{name}/{key}", unit, values)
            if judge_spread and len(values) >= LEAST_REPEATS:
                self.noise.series(f"{name} {key}", median(values).spread)


def _run_apart(epoch: Callable[[int], Samples[Key]], seed: int) -> Samples[Key]:
    """Run one epoch in a process of its own: other addresses, other physical pages."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_epoch, args=(sender, epoch, seed), daemon=True)
    # A child started while SIGINT is ignored ignores it too: Ctrl-C is the parent's to handle.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child.start()
    finally:
        signal.signal(signal.SIGINT, handler)
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
