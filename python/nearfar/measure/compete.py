"""Competition: near threads and far threads copy concurrently, each with its own arrays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from nearfar._native import CompeteBench
from nearfar.errors import MachineError
from nearfar.measure import drops
from nearfar.measure.arrays import DOUBLE, in_cache
from nearfar.measure.ceiling import check_rate
from nearfar.measure.forecast_errors import errors_of
from nearfar.measure.session import Effort, Samples, Session
from nearfar.measure.teams import Teams
from nearfar.records.choices import CompeteMode, Side
from nearfar.records.forecasts import CompeteForecast, CompeteForecasts
from nearfar.records.run import NO_TIME, Skipped
from nearfar.records.together import CompeteDrop, CompeteResult, CompeteRow, CompeteThread
from nearfar.stats import Estimate, median

if TYPE_CHECKING:
    from nearfar._native import CompeteRun, Usage
    from nearfar._native import CompeteThread as NativeThread

#: Uncounted iterations that estimate the duration and warm up.
FIRST_ITERATIONS = 3
#: Target duration of one repeat, and bounds of its number of iterations.
REPEAT_S = 0.5
MIN_ITERATIONS, MAX_ITERATIONS = 10, 2000

#: Near threads and far threads.
Split = tuple[int, int]
#: One grid point: near threads, far threads, and the side of the rate (near, far, sum).
Point = tuple[int, int, str]
SIDES = ("near", "far", "sum")


def tiers_of(mode: CompeteMode, near: str, far: str, threads: Split) -> list[str]:
    """The tier of each array. Every thread has two arrays."""
    source, destination = mode.split("-")
    tier = {"near": near, "far": far}
    return [near] * (2 * threads[0]) + [tier[source], tier[destination]] * threads[1]


def sweep(threads: int) -> tuple[Split, ...]:
    """All splits of a number of threads with at least one on each side, one far thread first."""
    return tuple((threads - far, far) for far in range(1, threads))


@dataclass
class Seen:
    """Other results of an epoch, by split: threads, their drops, and the common duration."""

    threads: dict[Split, list[CompeteThread]] = field(default_factory=dict)
    drops: dict[Split, list[CompeteDrop]] = field(default_factory=dict)
    seconds: dict[Split, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CompetePlan:
    """Splits of the threads, each measured on fresh arrays. Values: bytes/s."""

    mode: CompeteMode
    near: str
    far: str
    array_bytes: int
    cpus: tuple[int, ...]
    splits: tuple[Split, ...]
    iterations: int | None = None

    @property
    def grid(self) -> Sequence[Point]:
        """Each split, by side."""
        return [(near, far, side) for near, far in self.splits for side in SIDES]

    def teams(self, split: Split) -> Teams:
        """The CPUs of a split."""
        return Teams(*split, self.cpus)

    def epoch(self, seed: int) -> Samples[Point]:
        """Fresh arrays for each split, first touched by the threads that copy them."""
        samples: Samples[Point] = Samples(extras=[Seen()])
        order = list(self.splits)
        random.Random(seed).shuffle(order)
        for split in order:
            self._measure(split, samples)
        return samples

    def _measure(self, split: Split, samples: Samples[Point]) -> None:
        teams = self.teams(split)
        bench = CompeteBench(
            self.mode,
            self.near,
            self.far,
            self.array_bytes // DOUBLE,
            teams.near_cpus,
            teams.far_cpus,
        )
        first = bench.run(FIRST_ITERATIONS)
        run = bench.run(self.iterations or _iterations(first))
        bench.check()
        check_span(run)
        usages = [usage_of(thread) for thread in run["threads"]]
        rates = {"near": run["near_bytes_per_s"], "far": run["far_bytes_per_s"]}
        rates["sum"] = sum(rates.values())
        check_rate(rates["sum"], sum(split), "copy")
        for side in SIDES:
            samples.add((*split, side), rates[side], usages if side == "sum" else [])
        step = bench.iteration_bytes()
        seen: Seen = samples.extras[0]
        seen.threads[split] = [_thread(thread, run, step) for thread in run["threads"]]
        seen.drops[split] = [d for thread in run["threads"] for d in _drops(thread, run, step)]
        seen.seconds[split] = (run["to_ns"] - run["from_ns"]) * 1e-9

    def smaller(self) -> CompetePlan | None:
        """Keep every other split, and the last one."""
        if len(self.splits) <= 2:
            return None
        return replace(self, splits=(*self.splits[:-1:2], self.splits[-1]))


def check_span(run: CompeteRun) -> None:
    """Raise MachineError if the threads did not run at the same time."""
    if run["to_ns"] <= run["from_ns"]:
        raise MachineError(
            "the threads never ran all at once: those that share a processor took turns",
            "use more --iterations, or as many threads as processors",
        )


def _iterations(first: CompeteRun) -> int:
    """Iterations that fill a repeat for the fastest thread, which ends the common span."""
    fastest = min(float(drops.iteration_seconds(t).min()) for t in first["threads"])
    return int(np.clip(REPEAT_S / fastest, MIN_ITERATIONS, MAX_ITERATIONS))


def usage_of(thread: NativeThread) -> Usage:
    """Accounts of a thread over all of its iterations."""
    return {
        "wall_ns": thread["wall_ns"][-1],
        "cpu_ns": thread["cpu_ns"][-1],
        "minor_faults": thread["minor_faults"][-1],
        "major_faults": thread["major_faults"][-1],
        "involuntary_switches": thread["involuntary_switches"][-1],
    }


def _inside(thread: NativeThread, run: CompeteRun) -> np.ndarray:
    """End times of the iterations within the span in which all threads ran."""
    begun = (thread["start_ns"] - run["from_ns"]) * 1e-9
    ends = begun + np.cumsum(drops.iteration_seconds(thread))
    return ends[ends <= (run["to_ns"] - run["from_ns"]) * 1e-9]


def _thread(thread: NativeThread, run: CompeteRun, step: int) -> CompeteThread:
    ends = _inside(thread, run)
    rates = step / drops.iteration_seconds(thread)[: ends.size]
    return CompeteThread(
        side=_side(thread), cpu=thread["cpu"], end_s=ends.tolist(), rate_bytes_per_s=rates.tolist()
    )


def _side(thread: NativeThread) -> Side:
    return "far" if thread["far"] else "near"


def _drops(thread: NativeThread, run: CompeteRun, step: int) -> list[CompeteDrop]:
    begun = (thread["start_ns"] - run["from_ns"]) * 1e-9
    return [
        CompeteDrop(
            side=_side(thread),
            cpu=thread["cpu"],
            repeat=0,
            start_s=begun + drop.start_s,
            length_s=drop.length_s,
            depth=drop.depth,
            period_s=drop.period_s,
            off_cpu_s=drop.off_cpu_s,
            steal_s=drop.steal_s,
            involuntary_switches=drop.involuntary_switches,
            minor_faults=drop.minor_faults,
            major_faults=drop.major_faults,
            cause=drop.cause,
        )
        for drop in drops.find(thread, _inside(thread, run).size, step)
    ]


def measure(
    session: Session,
    plan: CompetePlan,
    effort: Effort,
    effective_last_cache: int,
    forecast: CompeteForecasts | None = None,
) -> tuple[CompeteResult, list[Skipped]]:
    """Run the plan; the split with the most far threads is the result, with all splits as rows.

    ``forecast``: the prediction of this run.
    """
    name = f"compete {plan.mode}"
    samples, dropped = session.repeat(name, "bytes_per_s", plan, effort)
    small = in_cache(plan.array_bytes, effective_last_cache)
    kept = sorted({(far, near) for near, far, _ in samples.series})
    forecast_rows = forecast.rows if forecast else []
    predicted = {(row.near_threads, row.far_threads): row for row in forecast_rows}
    rows = [
        _row(session, plan, samples, (near, far), small, predicted.get((near, far)))
        for far, near in kept
    ]
    given_up = sorted({(near, far) for near, far, _ in dropped})
    skipped = [
        Skipped(section="compete", what=f"{near} near and {far} far threads", why=NO_TIME)
        for near, far in given_up
    ]
    return CompeteResult(**dict(rows[-1]), rows=rows, forecast=forecast), skipped


def _row(
    session: Session,
    plan: CompetePlan,
    samples: Samples[Point],
    split: Split,
    small: bool,
    predicted: CompeteForecast | None,
) -> CompeteRow:
    rates = {f"{side}_bandwidth_bytes_per_s": median(samples.of((*split, side))) for side in SIDES}
    repeats: list[Seen] = [seen for seen in samples.extras if split in seen.threads]
    for number, seen in enumerate(repeats):
        for drop in seen.drops[split]:
            drop.repeat = number
    seconds = sum(seen.seconds[split] for seen in repeats)
    common = Estimate(seconds, seconds, seconds, len(repeats), 0.0, "sum")
    return CompeteRow(
        **session.figures(plan.near, plan.far, persistent=False, **rates, common_time_s=common),
        mode=plan.mode,
        near=plan.near,
        far=plan.far,
        near_threads=split[0],
        far_threads=split[1],
        oversubscribed=plan.teams(split).oversubscribed,
        size_bytes=plan.array_bytes,
        in_cache=small,
        threads=repeats[0].threads[split],
        drops=[drop for seen in repeats for drop in seen.drops[split]],
        errors=errors_of(predicted, rates),
    )
