"""The envelope of a record: one run, one directory, one ``run.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.advice import AdviceResult
from nearfar.records.allocators import MallocResult
from nearfar.records.depth import (
    AccessResult,
    BlocksResult,
    LoadedResult,
    ParallelismResult,
    PersistenceResult,
    TailsResult,
)
from nearfar.records.experiment import ExperimentResult
from nearfar.records.forecasts import CompeteForecasts, PipelineForecast
from nearfar.records.matrix import MatrixResult
from nearfar.records.noise import NoiseRecord, SectionVerdict
from nearfar.records.persistent_structures import IntsetResult, MapResult
from nearfar.records.placement import PlacementResult
from nearfar.records.programs import ProgramResult
from nearfar.records.results import BandwidthResult, LatencyResult, MappedResult, StreamResult
from nearfar.records.simulation import CountsSimulation, LoadCurve, Simulation
from nearfar.records.structures import StructuresResult
from nearfar.records.sweep import SweepResult
from nearfar.records.together import CompeteResult, PipelineResult, StencilResult, StencilSplit

if TYPE_CHECKING:
    from polars import DataFrame

#: Incremented by a change after which programs written for the old version could misread a record:
#: a key gets another meaning or unit, or is removed. A new optional key does not change it. An
#: older nearfar then refuses a record that has the key, with a message that names key and version.
SCHEMA_VERSION = 1


class Finding(BaseModel):
    """One check of ``nearfar doctor``."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)

    check: str
    level: Literal["ok", "note", "warning", "unknown"]
    found: str
    why: str = Field(default="", description="what it does to measurements")
    fix: str = Field(
        default="",
        # Published JSON keys keep their names (docs/reference/contract.md).
        validation_alias="mend",
        serialization_alias="mend",
        description="the command or setting that fixes it",
    )


#: Why a planned measurement was skipped: the time of the run was used up before it.
NO_TIME = "no time: a larger --time includes it"


#: Sections of predictions, each with the section whose measurement tests the prediction.
PREDICTED_SECTIONS = {
    "compete_forecast": "compete",
    "stencil_split": "stencil",
    "pipeline_forecast": "pipeline",
}


#: The skipped part of the host's measurement. A profile without these epochs is provisional.
REST_OF_HOST = "further epochs"


class Skipped(BaseModel):
    """A measurement that a section did not make, and the reason."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    section: str
    what: str
    why: str


class Sections(BaseModel):
    """The results of all sections; sections that did not run are absent."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    latency: LatencyResult | None = None
    bandwidth: BandwidthResult | None = None
    matrix: MatrixResult | None = None
    stream: StreamResult | None = None
    mapped: MappedResult | None = None
    parallelism: ParallelismResult | None = None
    blocks: BlocksResult | None = None
    access: AccessResult | None = None
    persistence: PersistenceResult | None = None
    loaded: LoadedResult | None = None
    tails: TailsResult | None = None
    compete_forecast: CompeteForecasts | None = None
    compete: CompeteResult | None = None
    stencil_split: StencilSplit | None = None
    stencil: StencilResult | None = None
    pipeline_forecast: PipelineForecast | None = None
    pipeline: PipelineResult | None = None
    map: MapResult | None = None
    intset: IntsetResult | None = None
    structures: StructuresResult | None = None
    malloc: MallocResult | None = None
    program: ProgramResult | None = None
    experiment: ExperimentResult | None = None
    simulation: Simulation | None = None
    simulated_counts: CountsSimulation | None = None
    load_curve: LoadCurve | None = None
    advice: AdviceResult | None = None
    placement: PlacementResult | None = None
    sweep: SweepResult | None = None

    def to_polars(self) -> DataFrame:
        """Return the figures of all sections, as ``FigureModel.to_polars`` does."""
        from nearfar.records.frame import frame_of_sections

        return frame_of_sections(self)


class Run(BaseModel):
    """``run.json``. Times are UTC, ISO 8601."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    schema_version: int = SCHEMA_VERSION
    nearfar_version: str
    verb: str
    arguments: dict[str, Any]
    started: str
    ended: str | None = None
    status: Literal["running", "finished", "interrupted", "failed"] = "running"
    seed: int
    machine: dict[str, Any] = Field(description="as `nearfar topo --json -` reports it")
    findings: list[Finding] = Field(default_factory=list)
    noise: NoiseRecord | None = None
    sections: Sections = Field(default_factory=Sections)
    skipped: list[Skipped] = Field(default_factory=list)

    def verdict_on(self, section: str) -> SectionVerdict | None:
        """Return how far the figures of a section can be relied on; None if that is not known.

        In records of older versions, a run of one section has verdicts by series, not by section.
        All of them apply to the section.
        """
        if self.noise is None:
            return None
        found = self.noise.by_section()
        if not found.keys() & Sections.model_fields.keys():
            return self.noise.on_whole()
        return found.get(PREDICTED_SECTIONS.get(section, section))

    def to_polars(self) -> DataFrame:
        """Return the figures of all sections, as ``FigureModel.to_polars`` does."""
        return self.sections.to_polars()
