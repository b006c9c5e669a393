"""Runs with several sections: ``study``, and the probe of a tier.

Each section has a fraction of the time. If its epochs do not fit (``session.Effort``), it drops
points of its grid, which are listed as skipped. If a section exceeds its time, all later ones get
proportionally less. If it leaves time, later ones may use that to repeat disturbed epochs. A
finished section is saved before the next one starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from nearfar._native import NativeError, parse_tier
from nearfar.errors import MachineError, NearfarError, from_native
from nearfar.machine.model import Machine
from nearfar.measure import (
    access,
    bandwidth,
    blocks,
    compete,
    intset,
    latency,
    loaded,
    mapped,
    maps,
    matrix,
    parallelism,
    persistence,
    pipeline,
    pool_tiers,
    stencil,
    stream,
    tails,
    together,
)
from nearfar.measure.arrays import ArrayPlan, default_array_bytes, thread_counts
from nearfar.measure.session import Effort, Session
from nearfar.measure.study_plan import LATEST_START, QUICK, StudyPlan
from nearfar.measure.teams import Teams
from nearfar.records.forecasts import CompeteForecasts, PipelineForecast
from nearfar.records.persistent_structures import IntsetStructure
from nearfar.records.run import NO_TIME, Sections, Skipped
from nearfar.records.structures import StructuresResult
from nearfar.records.together import StencilSplit
from nearfar.units import MIB

MAPPED_BYTES = 256 * MIB
MAP_POINTS = (maps.Point(20_000, 8), maps.Point(200_000, 8))
INTSETS: tuple[IntsetStructure, ...] = ("hash", "list", "skip_list")
INTSET_ENTRIES, INTSET_UPDATE_PERCENT = 1024, 50


Save = Callable[[Sections, list[Skipped]], None]


P = TypeVar("P")
F = TypeVar("F")


@dataclass(frozen=True)
class Predictors:
    """Functions that predict a section; passed in, as ``measure`` must not import ``model``."""

    compete: Callable[[Session, compete.CompetePlan, Effort], CompeteForecasts | None]
    split: Callable[[Session, stencil.StencilPlan, Effort, int], StencilSplit]
    pipeline: Callable[[Session, pipeline.PipelinePlan, Effort], PipelineForecast | None]
    structures: Callable[[Session, Sequence[int], Effort], StructuresResult]


@dataclass
class Study:
    """A study or a probe in progress."""

    session: Session
    machine: Machine
    plan: StudyPlan
    save: Save
    predictors: Predictors | None = None
    #: Called before each section; its time is not charged to the study.
    between: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.sections = Sections()
        self.skipped: list[Skipped] = []
        self.reported_cache = self.machine.last_cache_bytes()
        self.last_cache = self.reported_cache or latency.ASSUMED_CACHE

    def run(self) -> None:
        """Run all sections.

        A section that fails, or that would start too late, is listed as skipped. Raises the first
        error if all sections failed.
        """
        failures: list[NearfarError] = []
        measurements = self._measurements()
        for name in self.plan.left_out:
            self._skip(name, "the whole section", "its loops cannot keep the pace of a paced tier")
        whole, base = self.plan, 0.0
        end = time.monotonic() + whole.time_s
        for name, share in whole.shares.items():
            paused = time.monotonic()
            self.between()
            end += time.monotonic() - paused
            left_s = end - time.monotonic()
            self.session.span = (base, share)
            self.session.section = name
            self.plan = whole.within(left_s, sum(whole.shares.values()) - base)
            base += share
            if left_s < (1 - LATEST_START) * whole.time_s:
                self._skip(name, "the whole section", NO_TIME)
                continue
            try:
                measurements[name]()
            except (NearfarError, NativeError) as failure:
                error = failure if isinstance(failure, NearfarError) else from_native(failure)
                failures.append(error)
                reason = "; ".join(filter(None, (error.what, error.next_step)))
                self._skip(name, "the whole section", reason)
            self._save()
        self.session.section = ""
        if len(failures) == len(whole.shares):
            raise failures[0]

    def _measurements(self) -> dict[str, Callable[[], None]]:
        """The measurement of each section, by the name of the section."""
        return {
            "latency": self._latency,
            "bandwidth": self._bandwidth,
            "matrix": self._matrix,
            "stream": self._stream,
            "parallelism": self._parallelism,
            "blocks": self._blocks,
            "access": self._access,
            "persistence": self._persistence,
            "loaded": self._loaded,
            "tails": self._tails,
            "compete": self._compete,
            "stencil": self._stencil,
            "pipeline": self._pipeline,
            "mapped": self._mapped,
            "map": self._map,
            "intset": self._intset,
            "structures": self._structures,
        }

    @property
    def _tier(self) -> str:
        return self.plan.tiers[0]

    @property
    def _deep_tier(self) -> str:
        """The first tier, on huge pages if its page size can be chosen, to avoid page walks."""
        return latency.page_variants(self._tier)[0]

    @property
    def _far_region(self) -> int:
        """Size of a region that exceeds every cache, if the plan's largest region does."""
        return min(max(self.plan.region_bytes // 2, 4 * self.last_cache), self.plan.region_bytes)

    def _save(self) -> None:
        """Save the record: after each section, and after each prediction before it is tested."""
        self.save(self.sections, self.skipped)

    def _skip(self, section: str, what: str, why: str) -> None:
        self.skipped.append(Skipped(section=section, what=what, why=why))
        self.session.progress.note(f"skipped {section}: {what} ({why})")

    def _latency(self) -> None:
        result, skipped = latency.measure_tiers(
            self.session,
            self.plan.tiers,
            self.plan.cpus[0],
            self.plan.region_bytes,
            self.reported_cache,
            self.plan.effort("latency"),
            1 if self.plan.shares is QUICK else 2,
        )
        self.sections.latency = result
        self.last_cache = result.effective_last_cache_bytes
        self.skipped += skipped

    def _arrays(self, kernels: tuple[str, ...], tier: str) -> ArrayPlan:
        size = self.plan.array_bytes or default_array_bytes(self.last_cache)
        threads = tuple(self.plan.threads) or thread_counts(len(self.plan.cpus))
        return ArrayPlan(kernels, (tier, tier, tier), size, tuple(self.plan.cpus), threads)

    def _bandwidth(self) -> None:
        for tier in self.plan.tiers:
            plan = self._arrays(bandwidth.KERNELS, tier)
            effort = self.plan.effort("bandwidth", len(self.plan.tiers))
            try:
                result, skipped = bandwidth.measure(self.session, plan, effort, self.last_cache)
            except NativeError as error:
                if len(self.plan.tiers) == 1:
                    raise
                self._skip("bandwidth", tier, from_native(error).what)
                continue
            if self.sections.bandwidth is None:
                self.sections.bandwidth = result
            else:
                self.sections.bandwidth.points.extend(result.points)
            self.skipped += skipped

    def _matrix(self) -> None:
        plan = matrix.plan_of(self.machine, self.plan.cpus, self._far_region, self.last_cache)
        self.sections.matrix = matrix.measure(self.session, plan, self.plan.effort("matrix"))

    def _stream(self) -> None:
        plan = self._arrays(stream.KERNELS, self._tier)
        effort = self.plan.effort("stream")
        self.sections.stream, skipped = stream.measure(self.session, plan, effort, self.last_cache)
        self.skipped += skipped

    def _parallelism(self) -> None:
        self.sections.parallelism = parallelism.measure(
            self.session,
            self._deep_tier,
            self._far_region,
            self.plan.cpus[0],
            self.plan.effort("parallelism"),
        )

    def _blocks(self) -> None:
        self.sections.blocks = blocks.measure(
            self.session,
            self._deep_tier,
            self._far_region,
            self.plan.cpus[0],
            self.plan.effort("blocks"),
        )

    def _access(self) -> None:
        size = self.plan.array_bytes or default_array_bytes(self.last_cache)
        self.sections.access = access.measure(
            self.session, self._deep_tier, size, self.plan.cpus, self.plan.effort("access")
        )

    def _persistence(self) -> None:
        durable = [t for t in self.plan.tiers if parse_tier(t)["persists"] != "nothing"]
        self.sections.persistence = persistence.measure(
            self.session,
            (durable or [self._tier])[0],
            self.plan.cpus[0],
            self.plan.effort("persistence"),
        )

    def _loaded(self) -> None:
        self.sections.loaded = loaded.measure(
            self.session,
            self._deep_tier,
            self._far_region,
            self.plan.cpus,
            self.last_cache,
            self.plan.effort("loaded"),
        )

    def _tails(self) -> None:
        self.sections.tails = tails.measure(
            self.session,
            self._deep_tier,
            self._far_region,
            self.plan.cpus[0],
            self.plan.effort("tails"),
        )

    def _compete(self) -> None:
        size = self.plan.array_bytes or default_array_bytes(self.last_cache)
        plan = together.compete_plan(self._sides, self._teams, size, curve=self.plan.curve)
        if len(self.plan.cpus) > 2 and not self.plan.curve:
            self._skip("compete", "more far threads than one", "no time: --full has them")
        forecast = None
        if self.predictors:
            forecast = self._predicted("compete", self.predictors.compete, plan)
            self.sections.compete_forecast = forecast
            self._save()
        self.sections.compete, skipped = compete.measure(
            self.session, plan, self.plan.effort("compete", 2), self.last_cache, forecast
        )
        self.skipped += skipped

    def _stencil(self) -> None:
        plan = together.stencil_plan(self._sides, self._teams, self.session.seed)
        plan.check_room()
        split = None
        if self.predictors and not plan.teams.oversubscribed:
            effort = self.plan.effort("stencil", 2)
            split = self.predictors.split(self.session, plan, effort, self.last_cache)
            self.sections.stencil_split = split
            self._save()
            plan = replace(plan, far_rows=split.far_rows)
        self.sections.stencil = stencil.measure(
            self.session, plan, self.plan.effort("stencil", 2), self.last_cache, split
        )

    def _pipeline(self) -> None:
        plan = together.pipeline_plan(self._sides, self._teams, self.session.seed)
        plan.check_room()
        forecast = None
        if self.predictors:
            forecast = self._predicted("pipeline", self.predictors.pipeline, plan)
            self.sections.pipeline_forecast = forecast
            self._save()
        self.sections.pipeline = pipeline.measure(
            self.session, plan, self.plan.effort("pipeline", 2), self.last_cache, forecast
        )

    def _predicted(
        self, section: str, predict: Callable[[Session, P, Effort], F | None], plan: P
    ) -> F | None:
        """Predict a section, in half of its time; None, listed as skipped, if that fails."""
        try:
            return predict(self.session, plan, self.plan.effort(section, 2))
        except (NearfarError, NativeError) as failure:
            error = failure if isinstance(failure, NearfarError) else from_native(failure)
            self._skip(section, "the prediction", error.what)
            return None

    @property
    def _sides(self) -> tuple[str, str]:
        return self._tier, together.far_tier(self.plan.tiers)

    @property
    def _teams(self) -> Teams:
        return together.teams(tuple(self.plan.cpus))

    def _mapped(self) -> None:
        path, cpu = str(self.plan.path), self.plan.cpus[0]
        inspection = mapped.inspect(path, MAPPED_BYTES, cpu)
        plan = mapped.MappedPlan(path, MAPPED_BYTES, cpu, inspection.accesses)
        effort = self.plan.effort("mapped")
        self.sections.mapped, skipped = mapped.measure(self.session, plan, effort, inspection)
        self.skipped += skipped

    @property
    def _pool_tier(self) -> str:
        """The first tier in persistent or emulated persistent memory; otherwise ``shm:``."""
        holding = [t for t in self.plan.tiers if parse_tier(t)["persists"] in ("flush", "emulated")]
        return holding[0] if holding else "shm:"

    def _map(self) -> None:
        plan = maps.MapPlan(
            "map", "insert", MAP_POINTS, self._pool_tier, (self.plan.cpus[0],), compare=True
        )
        maps.check(plan)
        self.sections.map, skipped = maps.measure(self.session, plan, self.plan.effort("map"))
        self.skipped += skipped

    def _intset(self) -> None:
        effort = self.plan.effort("intset", len(INTSETS))
        results = [
            intset.measure(
                self.session,
                intset.plan_for(
                    structure,
                    INTSET_ENTRIES,
                    INTSET_UPDATE_PERCENT,
                    self._pool_tier,
                    self.plan.cpus[0],
                    effort.budget_s / intset.RUNS,
                ),
                replace(effort, epochs=effort.epochs or intset.RUNS, apart=False),
            )
            for structure in INTSETS
        ]
        self.sections.intset = results[0].model_copy(update={"others": results[1:]})

    def _structures(self) -> None:
        pool_tiers.require_pools()
        if self.predictors is None:
            raise MachineError("no model predicts structures here", "run nearfar study")
        self.sections.structures = self.predictors.structures(
            self.session, self.plan.cpus, self.plan.effort("structures")
        )
