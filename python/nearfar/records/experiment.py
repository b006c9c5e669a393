"""An experiment on simulated memories: default and optimized placement, and published claims."""

from __future__ import annotations

from pydantic import Field

from nearfar.records.choices import ExperimentLevel, ProgramName, WritePolicy
from nearfar.records.figures import Amount, Count, FigureModel, Finite, Share, Size


class TierAccesses(FigureModel):
    """Accesses of one run to near and far memory."""

    near_reads: Count
    near_writes: Count
    far_reads: Count
    far_writes: Count


class ExperimentRow(FigureModel):
    """One program at one size, twice: everything far, and its arrays near."""

    program: ProgramName
    n: Size
    after: ExperimentLevel = Field(
        description="caches before the trace: l1, or l1 and l2; or published counts"
    )
    far: str = Field(description="name of the far device")
    write_policy: WritePolicy
    default_time_s: Amount
    placed_time_s: Amount
    cpu_time_s: Amount = Field(description="CPU time of either run, between accesses")
    default_energy_J: Amount  # noqa: N815
    placed_energy_J: Amount  # noqa: N815
    time_saved: Finite = Field(description="1 - placed / default")
    energy_saved: Finite
    default: TierAccesses
    placed: TierAccesses


class Claim(FigureModel):
    """Published savings of a program: the lowest and the highest of its sizes."""

    program: ProgramName
    time_saved: tuple[Share, Share]
    energy_saved: tuple[Share, Share]


class ExperimentResult(FigureModel):
    """Result of an experiment. Its savings are those with published counts and blocking writes."""

    name: str
    title: str
    source: str
    near: str
    page_policy: str
    core: str
    instruction_ns: Amount
    time_saved: Finite
    energy_saved: Finite
    rows: list[ExperimentRow]
    claims: list[Claim]
