"""Random look-ups and updates of an integer set, after the WSCAD 2022 paper on PMDK.

Every run creates a new set on each medium: the structure in its pool, the same code without flushes
and fences, its volatile counterpart, and for hash a version with libpmemobj's transactions. The
order of the media rotates from run to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nearfar import _native
from nearfar.measure import pool_tiers
from nearfar.measure.session import Effort, Samples, Session
from nearfar.records.persistent_structures import IntsetResult, IntsetSeries
from nearfar.stats import Estimate, mean

if TYPE_CHECKING:
    from nearfar._native import IntsetRun
    from nearfar.records.choices import IntsetMedium
    from nearfar.records.persistent_structures import IntsetStructure

RUNS = 10


class Key(NamedTuple):
    """A figure of one medium."""

    medium: IntsetMedium
    figure: str


@dataclass(frozen=True)
class IntsetPlan:
    """A structure on a tier, and its baselines. Values: operations/s, or ns per operation."""

    structure: IntsetStructure
    entries: int
    update_percent: int
    tier: str
    cpu: int
    run_s: float

    @property
    def place(self) -> _native.TierSpec:
        """The tier, parsed."""
        return _native.parse_tier(self.tier)

    @property
    def on_disk(self) -> bool:
        """Whether a flush waits for a disk."""
        return self.place["persists"] == "msync"

    @property
    def media(self) -> tuple[IntsetMedium, ...]:
        """The media to compare; on a disk without libpmemobj's version, which takes hours there."""
        if not self.place["holds_pools"]:
            return ("dram",)
        with_pmdk = self.structure == "hash" and not self.on_disk
        ours: tuple[IntsetMedium, ...] = ("pmem", "unflushed", "dram")
        return (*ours, "pmdk") if with_pmdk else ours

    @property
    def grid(self) -> Sequence[Key]:
        """All figures of all media."""
        figures = ("rate", "fences", "lines", "changed")
        return [Key(medium, figure) for medium in self.media for figure in figures]

    def bench(self, medium: IntsetMedium, seed: int) -> _native.IntsetBench:
        """Create and fill a set."""
        place = pool_tiers.place(self.tier) if self.place["holds_pools"] else self.tier
        return _native.IntsetBench(
            self.structure, medium, self.entries, self.update_percent, place, self.cpu, seed
        )

    def epoch(self, seed: int) -> Samples[Key]:
        """One run on every medium, after a short uncounted run that warms the caches."""
        samples: Samples[Key] = Samples()
        turn = seed % len(self.media)
        for medium in (*self.media[turn:], *self.media[:turn]):
            bench = self.bench(medium, seed)
            bench.run(int(self.run_s * 1e8))
            self._note(samples, medium, bench.run(int(self.run_s * 1e9)))
            del bench  # closes its pool: a device holds one at a time
        return samples

    def _note(self, samples: Samples[Key], medium: IntsetMedium, run: IntsetRun) -> None:
        operations = run["operations"]
        waits = self.on_disk and medium == "pmem"  # for the disk
        usages = [] if waits else run["members"]
        samples.add(Key(medium, "rate"), operations / run["seconds"], usages)
        samples.add(Key(medium, "fences"), run["fences"] / operations, [])
        samples.add(Key(medium, "lines"), run["lines"] / operations, [])
        samples.add(Key(medium, "changed"), run["changed"] / operations, [])

    def smaller(self) -> IntsetPlan | None:
        """None: no point can be dropped."""
        return None


def plan_for(
    structure: IntsetStructure,
    entries: int,
    update_percent: int,
    tier: str,
    cpu: int,
    turn_s: float,
) -> IntsetPlan:
    """A plan whose run on all media takes ``turn_s``, including the short warm-up runs.

    Raises BadInputError for a tier that cannot hold a pool, MachineError where it does not fit.
    """
    plan = IntsetPlan(structure, entries, update_percent, tier, cpu, turn_s)
    for medium in plan.media:
        plan.bench(medium, 1)
    return replace(plan, run_s=turn_s / 1.1 / len(plan.media))


def measure(session: Session, plan: IntsetPlan, effort: Effort) -> IntsetResult:
    """Run the plan."""
    pool_tiers.require_pools()
    samples, _ = session.repeat(
        "intset",
        "ops_per_s",
        plan,
        effort,
        judge_spread=False,
        kernel_works=plan.on_disk,
        label=" ".join,
    )
    first = plan.media[0]
    estimates = {
        "ops_per_s": _mean(samples, Key(first, "rate"), session.seed),
        **_ratios(session, plan, samples),
    }
    return IntsetResult(
        **_shaped(session, plan, first, estimates),
        structure=plan.structure,
        entries=plan.entries,
        update_share=plan.update_percent / 100,
        tier=plan.tier,
        cpu=plan.cpu,
        run_time_s=plan.run_s,
        series=[_series(session, plan, samples, medium) for medium in plan.media],
    )


def _ratios(session: Session, plan: IntsetPlan, samples: Samples[Key]) -> dict[str, Estimate]:
    """Ratios of rates: of other media to the pool, and of the pool to libpmemobj's version."""
    first = Key(plan.media[0], "rate")
    against = {"dram": "slowdown", "unflushed": "unflushed_slowdown"}
    found = {
        key: _ratio(samples, Key(medium, "rate"), first, session.seed)
        for medium, key in against.items()
        if medium in plan.media[1:]
    }
    if "pmdk" in plan.media:
        found["pmdk_ratio"] = _ratio(samples, first, Key("pmdk", "rate"), session.seed)
    return found


def _series(
    session: Session, plan: IntsetPlan, samples: Samples[Key], medium: IntsetMedium
) -> IntsetSeries:
    estimates = {
        "ops_per_s": _mean(samples, Key(medium, "rate"), session.seed),
        "fences_per_op": _mean(samples, Key(medium, "fences"), session.seed),
        "lines_per_op": _mean(samples, Key(medium, "lines"), session.seed),
        "changed_share": _mean(samples, Key(medium, "changed"), session.seed),
    }
    return IntsetSeries(medium=medium, **_shaped(session, plan, medium, estimates))


def _shaped(
    session: Session, plan: IntsetPlan, medium: IntsetMedium, estimates: dict[str, Estimate]
) -> dict[str, Any]:
    """The figures, with the origin of DRAM for the volatile counterpart, else that of the pool."""
    tier = "dram" if medium == "dram" and plan.place["node"] < 0 else plan.tier
    return session.figures(tier, persistent=medium != "dram", **estimates)


def _mean(samples: Samples[Key], key: Key, seed: int) -> Estimate:
    return mean(samples.series[key], seed)


def _ratio(samples: Samples[Key], above: Key, below: Key, seed: int) -> Estimate:
    """Mean of the ratios of runs in direct succession."""
    ratios = np.divide(samples.series[above], samples.series[below])
    return mean(ratios.tolist(), seed)
