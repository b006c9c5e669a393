"""Simulated experiments: traced programs by device, write policy and placement.

``seoul`` is the experiment of the Seoul 2014 thesis. Its traces have only the accesses to arrays:
*default* places all arrays far, *placed* all arrays near. Not included are the far traffic of
stack, code and other heap, and the accesses of the kernel, which are near in the default of the
thesis.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nearfar.errors import BadInputError
from nearfar.files import read_text
from nearfar.profiles import load_profile
from nearfar.records.choices import (
    CoreModel,
    ExperimentLevel,
    PagePolicy,
    ProgramName,
    Scheduler,
    WritePolicy,
)
from nearfar.records.experiment import Claim, ExperimentResult, ExperimentRow, TierAccesses
from nearfar.records.figures import Origin, Provenance, claimed
from nearfar.simulation.access_counts import AccessCounts
from nearfar.simulation.access_counts import simulate as simulate_counts
from nearfar.simulation.controller import DEFAULT_MAPPING, DEFAULT_TIMEOUT_NS, Controller
from nearfar.simulation.devices import Device
from nearfar.simulation.placements import Placement, parse
from nearfar.simulation.run import Options, run

if TYPE_CHECKING:
    from nearfar._native import SimOutcome

_HERE = Path(__file__).parent / "experiments"
_PS = 1e-12
_SIMULATED = (
    "default_time_s",
    "placed_time_s",
    "default_energy_J",
    "placed_energy_J",
    "time_saved",
    "energy_saved",
)
_Saved = tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ExperimentProgram(_Strict):
    """A program with its sizes, and its published savings."""

    program: ProgramName
    sizes: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    steps: int = Field(ge=1)
    claimed_time_saved: _Saved | None = None
    claimed_energy_saved: _Saved | None = None


class PublishedCounts(_Strict):
    """Published numbers of accesses of one program, for counts mode."""

    program: ProgramName
    cpu_time_s: list[Annotated[float, Field(ge=0)]] = Field(min_length=1)
    default: AccessCounts
    placed: AccessCounts


class Experiment(_Strict):
    """An experiment file."""

    schema_version: Literal[1]
    name: str
    title: str
    source: str
    near: str
    far: list[str] = Field(min_length=1)
    after: list[Literal["l1", "l2"]] = Field(min_length=1)
    write_policies: list[Literal["blocking", "posted"]] = Field(min_length=1)
    page_policy: PagePolicy
    timeout_ns: float | None = Field(None, ge=0, le=1e9)
    scheduler: Scheduler = "fr-fcfs"
    row_hit_cap: int | None = Field(None, ge=1)
    write_drain: tuple[int, int, int] = (32, 16, 1)
    mapping: str = DEFAULT_MAPPING
    power_down_after_ns: float | None = Field(None, ge=0, le=1e9)
    self_refresh_after_ns: float | None = Field(None, ge=0, le=1e9)
    core: CoreModel
    instruction_ns: float = Field(ge=0)
    seed: int = Field(ge=0)
    programs: list[ExperimentProgram] = Field(min_length=1)
    counts: PublishedCounts

    @model_validator(mode="after")
    def _timeout_has_an_effect(self) -> Self:
        if self.timeout_ns is not None and self.page_policy != "timeout":
            raise ValueError("timeout_ns has no effect unless page_policy is timeout")
        return self

    def controller(self) -> Controller:
        """Settings of the controllers of both memories."""
        return Controller(
            page_policy=self.page_policy,
            timeout_ns=DEFAULT_TIMEOUT_NS if self.timeout_ns is None else self.timeout_ns,
            scheduler=self.scheduler,
            row_hit_cap=self.row_hit_cap,
            write_drain=self.write_drain,
            mapping=self.mapping,
            power_down_after_ns=self.power_down_after_ns,
            self_refresh_after_ns=self.self_refresh_after_ns,
        )


def load_experiment(name_or_path: str) -> Experiment:
    """Load a shipped experiment by name, or a file. Raises BadInputError that names an error."""
    shipped = _HERE / f"{name_or_path}.toml"
    path = shipped if shipped.exists() else Path(name_or_path)
    names = ", ".join(sorted(file.stem for file in _HERE.glob("*.toml")))
    text = read_text(path, f"name a shipped experiment ({names}), or a file")
    try:
        return Experiment.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadInputError(f"{path}: {where}: {first['msg']}", "fix the file") from None
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{path}: {error}", "fix the file") from None


#: Called before each program and size: how many are done, of how many, and which is next.
Progress = Callable[[int, int, str], None]


def run_experiment(experiment: Experiment, report: Progress) -> ExperimentResult:
    """Trace, simulate, compare. Raises the errors of the programs and of the core."""
    rows = list(_from_counts(experiment))
    top = next(row for row in rows if row.write_policy == "blocking")
    rows += _traced_rows(experiment, report)
    simulated = Provenance(
        origin=Origin.SIMULATED,
        statistic="simulation",
        samples=0,
        seed=experiment.seed,
        note="published counts, counts mode",
    )
    return ExperimentResult(
        name=experiment.name,
        title=experiment.title,
        source=experiment.source,
        near=experiment.near,
        page_policy=experiment.page_policy,
        core=experiment.core,
        instruction_ns=experiment.instruction_ns,
        time_saved=top.time_saved,
        energy_saved=top.energy_saved,
        rows=rows,
        claims=_claims(experiment),
        provenance={
            "time_saved": simulated,
            "energy_saved": simulated,
            "instruction_ns": claimed("assumed by the experiment"),
        },
    )


def _traced_rows(experiment: Experiment, report: Progress) -> Iterator[ExperimentRow]:
    """Trace and simulate each program and size."""
    work = [(entry, n) for entry in experiment.programs for n in entry.sizes]
    for done, (entry, n) in enumerate(work):
        report(done, len(work), f"{entry.program} {n}")
        yield from _program(experiment, entry, n)


def _claims(experiment: Experiment) -> list[Claim]:
    """Published savings of each program with savings of time and energy."""
    return [
        Claim(
            program=entry.program,
            time_saved=entry.claimed_time_saved,
            energy_saved=entry.claimed_energy_saved,
        )
        for entry in experiment.programs
        if entry.claimed_time_saved and entry.claimed_energy_saved
    ]


@dataclass(frozen=True)
class _RunResult:
    """Time and energy of one run."""

    time_s: float
    energy_J: float  # noqa: N815
    counts: TierAccesses


def _row(
    program: ProgramName,
    n: int,
    after: ExperimentLevel,
    far: str,
    writes: WritePolicy,
    cpu_time_s: float,
    default: _RunResult,
    placed: _RunResult,
) -> ExperimentRow:
    published = after == "published counts"
    simulated = Provenance(
        origin=Origin.SIMULATED,
        statistic="simulation",
        samples=0,
        note="counts mode" if published else "exact engine",
    )
    computing = claimed("assumed: the thesis prints none") if published else simulated
    return ExperimentRow(
        program=program,
        n=n,
        after=after,
        far=far,
        write_policy=writes,
        cpu_time_s=cpu_time_s,
        default_time_s=default.time_s,
        placed_time_s=placed.time_s,
        default_energy_J=default.energy_J,
        placed_energy_J=placed.energy_J,
        time_saved=1 - placed.time_s / default.time_s,
        energy_saved=1 - placed.energy_J / default.energy_J,
        default=default.counts,
        placed=placed.counts,
        provenance={**dict.fromkeys(_SIMULATED, simulated), "cpu_time_s": computing},
    )


def _from_counts(experiment: Experiment) -> Iterator[ExperimentRow]:
    given = experiment.counts
    n = next(max(entry.sizes) for entry in experiment.programs if entry.program == given.program)
    for far in experiment.far:
        for writes in experiment.write_policies:
            for cpu_time_s in given.cpu_time_s:
                ran = []
                for counts in (given.default, given.placed):
                    found = simulate_counts(
                        counts,
                        load_profile(experiment.near),
                        load_profile(far),
                        cpu_time_s=cpu_time_s,
                        write_policy=writes,
                    )
                    ran.append(_RunResult(found.time_s, found.energy_J, _tier_accesses(counts)))
                yield _row(given.program, n, "published counts", far, writes, cpu_time_s, *ran)


def _tier_accesses(counts: AccessCounts) -> TierAccesses:
    return TierAccesses(
        near_reads=counts.near.reads,
        near_writes=counts.near.writes,
        far_reads=counts.far.reads,
        far_writes=counts.far.writes,
    )


def _program(experiment: Experiment, entry: ExperimentProgram, n: int) -> Iterator[ExperimentRow]:
    from nearfar.measure import programs

    near = Device.of(load_profile(experiment.near))
    with tempfile.TemporaryDirectory(prefix="nearfar-experiment-") as folder:
        for after in experiment.after:
            file = Path(folder) / after
            caches = [programs.CACHES[level] for level in ("l1", "l2")[: int(after[1])]]
            programs.record(entry.program, n, entry.steps, experiment.seed, file, caches)
            for far in experiment.far:
                device = Device.of(load_profile(far))
                for writes in experiment.write_policies:
                    options = Options(
                        controller=experiment.controller(),
                        write_policy=writes,
                        core=experiment.core,
                    )
                    pair = [
                        _simulated(file, experiment, near, device, parse(where, [], 0), options)
                        for where in ("all-far", "all-near")
                    ]
                    cpu_time_s = pair[0][1]["compute_ps"] * _PS
                    yield _row(
                        entry.program, n, after, far, writes, cpu_time_s, pair[0][0], pair[1][0]
                    )


def _simulated(
    file: Path,
    experiment: Experiment,
    near: Device,
    far: Device,
    placement: Placement,
    options: Options,
) -> tuple[_RunResult, SimOutcome]:
    from nearfar import _native

    source = _native.TraceSource(str(file), experiment.instruction_ns * 1000, [])
    outcome, _ = run(source, near, far, placement, options, "exact")
    accesses = TierAccesses(
        near_reads=outcome["near"]["reads"],
        near_writes=outcome["near"]["writes"],
        far_reads=outcome["far"]["reads"],
        far_writes=outcome["far"]["writes"],
    )
    energy = sum(sum(outcome[tier]["energy_J"].values()) for tier in ("near", "far"))
    return _RunResult(outcome["end_ps"] * _PS, energy, accesses), outcome
