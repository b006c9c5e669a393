"""An experiment on simulated memories: default and optimized placement, and published claims."""

from __future__ import annotations

from pydantic import Field

from nearfar.records.choices import ExperimentLevel, ProgramName, WritePolicy
from nearfar.records.shape import Amount, Count, Finite, Shaped, Share, Size


class ZoneCounts(Shaped):
    """Accesses of one run by zone."""

    near_reads: Count
    near_writes: Count
    far_reads: Count
    far_writes: Count


class ExperimentRow(Shaped):
    """One program at one size, twice: everything far, and its arrays near."""

    program: ProgramName
    n: Size
    after: ExperimentLevel = Field(description="caches before the trace")
    far: str = Field(description="device")
    write_policy: WritePolicy
    default_time_s: Amount
    placed_time_s: Amount
    cpu_time_s: Amount = Field(description="of either, between accesses")
    default_energy_J: Amount  # noqa: N815
    placed_energy_J: Amount  # noqa: N815
    time_saved: Finite = Field(description="1 - placed / default")
    energy_saved: Finite
    default: ZoneCounts
    placed: ZoneCounts


class Claim(Shaped):
    """Published savings of a program: the lowest and the highest of its sizes."""

    program: ProgramName
    time_saved: tuple[Share, Share]
    energy_saved: tuple[Share, Share]


class ExperimentResult(Shaped):
    """Result of an experiment. ``time_saved``: published counts, blocking writes."""

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
