"""Results of concurrent work on near and far memory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nearfar.records.choices import (
    CompeteMode,
    DropCause,
    PipelineStage,
    Side,
    StencilKernel,
    StencilVersion,
)
from nearfar.records.figures import FigureModel, ObservationModel
from nearfar.records.forecasts import (
    CompeteForecasts,
    ForecastError,
    PipelineForecast,
    PublishedError,
)

_ERRORS = "of what was predicted before the run; empty without a prediction"


class CompeteDrop(ObservationModel):
    """Consecutive iterations that took much longer than the thread's median iteration.

    A drop is a single observation without an interval.
    """

    side: Side
    cpu: int
    repeat: int = Field(description="counted from 0")
    start_s: float = Field(description="since the span in which all threads ran began")
    length_s: float
    depth: float = Field(description="1 - lowest rate over the thread's median rate")
    period_s: float | None = Field(
        None, description="median time from one drop of this thread to the next; None below three"
    )
    off_cpu_s: float = Field(description="time in which the thread did not run on its processor")
    steal_s: float = Field(
        description="taken by the hypervisor, counted in ticks of 10 ms and looked up every 50 ms"
    )
    involuntary_switches: int
    minor_faults: int
    major_faults: int
    cause: DropCause


class CompeteThread(ObservationModel):
    """One thread in one repeat: the rate of each iteration."""

    side: Side
    cpu: int
    end_s: list[float] = Field(description="of each iteration, since the common span began")
    rate_bytes_per_s: list[float]


class CompeteRow(FigureModel):
    """Near threads copy near to near while far threads copy in the direction of the mode."""

    mode: CompeteMode
    near: str
    far: str
    near_threads: int
    far_threads: int
    oversubscribed: bool = Field(description="more threads than processors: not used in fits")
    size_bytes: int = Field(description="per array; each thread has two")
    in_cache: bool
    near_bandwidth_bytes_per_s: float = Field(description="summed over the near threads")
    far_bandwidth_bytes_per_s: float
    sum_bandwidth_bytes_per_s: float
    common_time_s: float = Field(description="in which all threads ran, over all repeats")
    threads: list[CompeteThread] = Field(description="of the first repeat, near ones first")
    drops: list[CompeteDrop] = Field(description="of all threads and repeats")
    errors: list[ForecastError] = Field(default_factory=list, description=_ERRORS)


class CompeteResult(CompeteRow):
    """Section ``compete``: the row with the most far threads; ``rows`` has all rows."""

    rows: list[CompeteRow] = Field(default_factory=list)
    forecast: CompeteForecasts | None = Field(None, description="made before the rows were run")


class StencilSplit(FigureModel):
    """The predicted best number of rows in far memory, from measurements of both tiers."""

    kind: Literal["nearfar-stencil-split"] = "nearfar-stencil-split"
    kernel: StencilKernel
    rows: int = Field(ge=1)
    cols: int = Field(ge=1)
    version: StencilVersion
    near: str
    far: str
    near_threads: int = Field(ge=1)
    far_threads: int = Field(ge=1)
    far_rows: int = Field(ge=0, description="predicted to let both sides end together")
    near_time_s: float = Field(description="one sweep, predicted")
    far_time_s: float
    total_time_s: float
    near_bandwidth_bytes_per_s: float = Field(description="near copies, concurrent with far ones")
    far_bandwidth_bytes_per_s: float = Field(description="far copies, concurrent with near ones")
    near_alone_bandwidth_bytes_per_s: float = Field(description="near copies, nothing far")
    near_element_time_s: float = Field(
        description="a thread's time for an element of the sweep, all of it near, nothing far"
    )
    traffic_factor: float = Field(description="traffic over a copy's, by the layer condition")
    calibration_level: int = Field(
        ge=0, le=3, description="0 (profiles only) to 3 (most is measured)"
    )
    calibration: str
    predicted_on: str = Field(description="date and time, ISO 8601")
    published: list[PublishedError] = Field(default_factory=list)


class StencilResult(FigureModel):
    """Section ``stencil``: one sweep over an array whose rows are divided between two memories.

    With ``stencil7`` a row is a plane of ``cols`` × ``cols`` elements.
    """

    kernel: StencilKernel = "stencil8"
    rows: int
    cols: int
    far_rows: int = Field(description="the last rows of the array")
    version: StencilVersion
    near: str
    far: str
    near_threads: int
    far_threads: int
    oversubscribed: bool = Field(description="more threads than processors: not used in fits")
    in_cache: bool
    sweeps: int = Field(description="of one repeat; times are means over them")
    matches_serial: bool = Field(description="every repeat left the bits of a serial sweep")
    near_time_s: float | None = Field(None, description="slowest near thread; None without rows")
    far_time_s: float | None = Field(None, description="slowest far thread; None without rows")
    total_time_s: float
    near_bandwidth_bytes_per_s: float | None = Field(None, description="16 bytes an element")
    far_bandwidth_bytes_per_s: float | None = None
    near_alone_time_s: float | None = Field(
        None, description="a sweep with all rows near and the same near threads"
    )
    far_alone_time_s: float | None = Field(
        None, description="a sweep with all rows far and the same far threads"
    )
    split: StencilSplit | None = Field(None, description="the prediction that chose the far rows")
    errors: list[ForecastError] = Field(default_factory=list, description=_ERRORS)

    @property
    def row_elements(self) -> int:
        """Elements of a row."""
        return elements_of_row(self.kernel, self.cols)


def elements_of_row(kernel: StencilKernel, cols: int) -> int:
    """Return the elements of a row; of a plane for a stencil in three dimensions."""
    return cols * cols if kernel == "stencil7" else cols


class PipelineLap(ObservationModel):
    """The time of one stage of one iteration."""

    side: Side
    stage: PipelineStage
    start_s: float = Field(description="since the first lap began")
    end_s: float


class PipelineResult(FigureModel):
    """Section ``pipeline``: generation near, transfer and analysis far. Times of all iterations.

    The first ``compared_iterations`` of every repeat had exactly the results of one near thread
    alone. Transfer and idle times are None if near threads did all of the work.
    """

    elements: int = Field(description="of 8 bytes")
    iterations: int
    near: str
    far: str | None
    near_threads: int
    far_threads: int = Field(description="0 where near threads did all, in turns")
    oversubscribed: bool = Field(description="more threads than processors: not used in fits")
    in_cache: bool
    compared_iterations: int
    generate_time_s: float
    generate_idle_time_s: float | None = Field(None, description="waiting for the copy")
    transfer_time_s: float | None = None
    analyse_time_s: float
    transfer_idle_time_s: float | None = Field(None, description="far side waiting for a vector")
    total_time_s: float
    timeline: list[PipelineLap] = Field(
        default_factory=list,
        description="first iterations of the first repeat, by the first thread of each side",
    )
    forecast: PipelineForecast | None = Field(None, description="made before it ran")
    errors: list[ForecastError] = Field(default_factory=list, description=_ERRORS)
