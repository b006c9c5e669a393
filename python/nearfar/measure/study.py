"""The main job: every section of a study, each with its share of the time.

A section shrinks its grid to its share, never its repeats; what was left out is listed. Each
finished section is handed over at once, so that it is on disk before the next one starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nearfar._native import NativeError
from nearfar.errors import NearfarError, from_native
from nearfar.machine.model import Machine
from nearfar.measure import bandwidth, latency, mapped, stream
from nearfar.measure.arrays import ArrayPlan, default_array_bytes, thread_counts
from nearfar.measure.session import Effort, Session
from nearfar.records.run import Sections, Skipped
from nearfar.units import GIB, MIB

#: Share of the whole time, by section. The rest is for setting up and for the report.
SHARES = {"latency": 0.35, "bandwidth": 0.2, "stream": 0.15, "mapped": 0.2}
MAPPED_BYTES = 256 * MIB


@dataclass(frozen=True)
class StudyPlan:
    """What a study covers. ``path``: a directory for the mapped file; ``full``: whole grids."""

    time_s: float
    path: Path
    full: bool = False

    def effort(self, section: str, parts: int = 1) -> Effort:
        """The budget of one of ``parts`` equal parts of a section."""
        return Effort(budget_s=self.time_s * SHARES[section] / parts)


Save = Callable[[Sections, list[Skipped]], None]


@dataclass
class Study:
    """A study under way."""

    session: Session
    machine: Machine
    plan: StudyPlan
    save: Save

    def __post_init__(self) -> None:
        self.sections = Sections()
        self.skipped: list[Skipped] = []
        self.cpus = self.machine.cores_first()
        self.reported_cache = self.machine.last_cache_bytes()
        self.last_cache = self.reported_cache or latency.ASSUMED_CACHE

    def run(self) -> None:
        """All sections in turn. A section that fails is listed as skipped; the rest still runs."""
        for name in SHARES:
            try:
                getattr(self, f"_{name}")()
            except (NearfarError, NativeError) as failure:
                error = failure if isinstance(failure, NearfarError) else from_native(failure)
                self._skip(name, "the whole section", f"{error.what}; {error.next_step}")
            self.save(self.sections, self.skipped)

    def _skip(self, section: str, what: str, why: str) -> None:
        self.skipped.append(Skipped(section=section, what=what, why=why))
        self.session.progress.note(f"skipped {section}: {what} ({why})")

    def _memory_tiers(self) -> list[str]:
        """Tiers that are memory to the processor: all but ``file:``, which `mapped` covers."""
        return [t.spec for t in self.machine.tiers if not t.spec.startswith("file:")]

    def _latency(self) -> None:
        region = GIB if self.plan.full else latency.default_region(self.reported_cache)
        result, skipped = latency.measure_tiers(
            self.session,
            self._memory_tiers(),
            self.cpus[0],
            region,
            self.reported_cache,
            self.plan.effort("latency"),
        )
        self.sections.latency = result
        self.last_cache = result.effective_last_cache_bytes
        self.skipped += skipped

    def _arrays(self, kernels: tuple[str, ...], tier: str) -> ArrayPlan:
        size = default_array_bytes(self.last_cache)
        most = len(self.cpus)
        threads = tuple(range(1, most + 1)) if self.plan.full else thread_counts(most)
        return ArrayPlan(kernels, (tier, tier, tier), size, tuple(self.cpus), threads)

    def _bandwidth(self) -> None:
        tiers = self._memory_tiers()
        for tier in tiers:
            plan = self._arrays(bandwidth.KERNELS, tier)
            effort = self.plan.effort("bandwidth", len(tiers))
            try:
                result, skipped = bandwidth.measure(self.session, plan, effort, self.last_cache)
            except NativeError as error:
                self._skip("bandwidth", tier, from_native(error).what)
                continue
            if self.sections.bandwidth is None:
                self.sections.bandwidth = result
            else:
                self.sections.bandwidth.points.extend(result.points)
            self.skipped += skipped

    def _stream(self) -> None:
        plan = self._arrays(stream.KERNELS, "dram")
        effort = self.plan.effort("stream")
        self.sections.stream, skipped = stream.measure(self.session, plan, effort, self.last_cache)
        self.skipped += skipped

    def _mapped(self) -> None:
        path, cpu = str(self.plan.path), self.cpus[0]
        inspection = mapped.inspect(path, MAPPED_BYTES, cpu)
        plan = mapped.MappedPlan(path, MAPPED_BYTES, cpu, inspection.accesses)
        effort = self.plan.effort("mapped")
        self.sections.mapped, skipped = mapped.measure(self.session, plan, effort, inspection)
        self.skipped += skipped
