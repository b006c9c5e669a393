"""Measure the whole machine, or one tier in depth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.measure import study as study_sections
from nearfar.measure import study_plan
from nearfar.measure.session import Effort
from nearfar.measure.tiers import is_paced
from nearfar.records.run import Run
from nearfar.workflows.host_here import StudiedHost, host_budget_s
from nearfar.workflows.recording import Measured, Recording, recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.measure.matrix import MatrixPlan
    from nearfar.measure.study import Predictors
    from nearfar.measure.study_plan import StudyPlan
    from nearfar.records.matrix import MatrixResult
    from nearfar.records.run import Sections, Skipped
    from nearfar.workflows.options import Options

#: Seconds of a study by default, and of a full one.
STUDY_S, FULL_S = 150.0, 1800.0
#: A section runs fewer than six epochs if six would exceed this multiple of its time. So a slow
#: section does not use up the time of later ones, which would then be skipped.
MAX_OVERRUN = 1.5
#: Seconds of a matrix by default.
MATRIX_S = 20.0


@dataclass(frozen=True)
class Studied(Measured[Run]):
    """A study, and the file of its report."""

    report: Path


def planned_s(time_s: float | None, *, full: bool) -> dict[str, float]:
    """The planned time of each section of a study of this machine, in seconds."""
    from nearfar.machine.topology import this_machine

    whole = time_s if time_s is not None else FULL_S if full else STUDY_S
    host_s = host_budget_s(whole)
    shares = study_plan.study_shares(this_machine())
    planned = {name: share * (whole - host_s) for name, share in shares.items()}
    return {**planned, "host": host_s} if host_s else planned


def study(options: Options, *, full: bool = False) -> Studied:
    """Measure the tiers of this machine, compare with earlier studies, and write the report."""
    from nearfar import store
    from nearfar.report.html import page

    time_s = options.budget_s(FULL_S if full else STUDY_S)
    with recorded("study", {"time_s": time_s, "full": full}, options) as recording:
        folder, machine = recording.directory.path, recording.machine
        before = store.previous_runs("study", machine.id, folder.parent)
        plan = _plan(recording, time_s, full=full)
        recording.directory.run.skipped += _run(recording, plan, _predictors())
    run = recording.directory.run
    # The result of a study is its whole record.
    return Studied(run, run, folder, page.write_report(folder, run, before))


def _run(
    recording: Recording, plan: StudyPlan, predictors: Predictors | None = None
) -> list[Skipped]:
    """Measure the sections of the plan, and epochs of the host profile between them.

    Returns what is missing in the host profile. Only a study reports it.
    """
    # A paced tier emulates another memory: its figures do not belong in the profile of this host.
    paced = [tier for tier in plan.tiers if is_paced(tier)]
    host = StudiedHost(recording.session, plan.tiers, 0.0 if paced else plan.time_s)
    plan = replace(plan, time_s=plan.time_s - host.budget_s)
    study_sections.Study(
        recording.session, recording.machine, plan, recording.replace, predictors, host.epoch
    ).run()
    return host.keep()


def _plan(recording: Recording, time_s: float, *, full: bool) -> StudyPlan:
    from nearfar.measure import latency
    from nearfar.units import GIB

    machine = recording.machine
    cpus = machine.cores_first()
    return study_plan.StudyPlan(
        study_plan.memory_tiers(machine),
        study_plan.study_shares(machine),
        time_s,
        cpus,
        GIB if full else latency.default_region(machine.last_cache_bytes()),
        recording.directory.path,
        range(1, len(cpus) + 1) if full else (),
        curve=full,
        max_overrun=MAX_OVERRUN,
    )


def _predictors() -> Predictors:
    from nearfar.workflows import forecasting
    from nearfar.workflows.stencil_split import predict_split
    from nearfar.workflows.structures_study import predict_structures

    return study_sections.Predictors(
        forecasting.predict_compete,
        predict_split,
        forecasting.predict_pipeline,
        predict_structures,
    )


def probe(
    tier: str,
    options: Options,
    *,
    quick: bool = False,
    region_bytes: int | None = None,
    threads: Sequence[int] = (),
    size: str | None = None,
) -> Measured[Sections]:
    """Measure one tier in depth, and write its device profile into the record."""
    from nearfar.measure.profile import profile_of
    from nearfar.measure.tiers import check_region, check_tiers
    from nearfar.profiles.sheets import write_profile
    from nearfar.workflows.plans import PROBE_S, QUICK_S, probe_plan

    check_tiers([tier])
    check_region(tier, region_bytes)
    arguments = {"tier": tier, "time_s": options.budget_s(QUICK_S if quick else PROBE_S)}
    with recorded("probe", arguments, options) as recording:
        plan = probe_plan(
            recording.machine,
            tier,
            options,
            quick=quick,
            region_bytes=region_bytes,
            threads=threads,
            size=size,
        )
        _run(recording, plan)
    run, folder = recording.directory.run, recording.directory.path
    write_profile(profile_of(run, folder.name, tier), folder / "profile.toml")
    return recording.measured(run.sections)


def probe_matrix(options: Options) -> Measured[MatrixResult]:
    """Measure latency and bandwidth from the CPUs of each node to the memory of each node."""
    from nearfar.measure import matrix

    time_s = options.budget_s(MATRIX_S)
    with recorded("probe", {"matrix": True, "time_s": time_s}, options, "matrix") as recording:
        result = matrix.measure(
            recording.session, _matrix_plan(recording, options), Effort(time_s, options.runs)
        )
        recording.keep("matrix", result)
    return recording.measured(result)


def _matrix_plan(recording: Recording, options: Options) -> MatrixPlan:
    from nearfar.measure import latency, matrix
    from nearfar.workflows.plans import chosen_cpus, last_cache

    machine = recording.machine
    cpus = chosen_cpus(machine, options.cpus)
    region_bytes = latency.default_region(machine.last_cache_bytes())
    return matrix.plan_of(machine, cpus, region_bytes, last_cache(recording, cpus[0]))
