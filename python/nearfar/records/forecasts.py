"""Predictions of concurrent work on near and far memory, saved before the run that tests them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from nearfar.records.figures import FigureModel, ObservationModel


class ForecastError(ObservationModel):
    """The relative error of a prediction against the run that tested it."""

    key: str = Field(description="of the measured figure")
    error: float = Field(description="predicted over measured, less 1")


def error_of(errors: Sequence[ForecastError], key: str) -> float | None:
    """The error of one figure; None where it was not predicted."""
    return next((each.error for each in errors if each.key == key), None)


class PublishedError(ObservationModel):
    """Errors of the model of a prediction against published measurements."""

    table: str = Field(description="a file of nearfar.profiles, folder published")
    what: str = Field(description="what was predicted, and from what")
    cases: int
    mean_error: float = Field(description="mean of |predicted / published - 1|")
    worst_error: float = Field(description="predicted / published - 1 of the case farthest off")


class Forecast(FigureModel):
    """Fields of all predictions."""

    calibration_level: int = Field(
        ge=0, le=3, description="0 (profiles only) to 3 (most is measured)"
    )
    calibration: str
    predicted_on: str = Field(description="date and time, ISO 8601")


class CompeteForecast(Forecast):
    """Predicted rates of both sides together, from the measured rates of each side alone."""

    near_threads: int
    far_threads: int
    near_alone_bandwidth_bytes_per_s: float = Field(description="near copies, nothing far")
    far_alone_bandwidth_bytes_per_s: float = Field(description="far copies, nothing near")
    together_bandwidth_bytes_per_s: float = Field(
        description="near copies by as many threads as both sides have"
    )
    near_bandwidth_bytes_per_s: float
    far_bandwidth_bytes_per_s: float
    sum_bandwidth_bytes_per_s: float


class CompeteForecasts(FigureModel):
    """Predictions for all splits whose threads have one CPU each."""

    mode: str
    near: str
    far: str
    rows: list[CompeteForecast]
    published: list[PublishedError] = Field(default_factory=list)


class PipelineForecast(Forecast):
    """Predicted times of all iterations, from the measured times and rates of each side alone."""

    near: str
    far: str
    near_threads: int
    far_threads: int
    generate_alone_time_s: float = Field(description="near threads generate, nothing else runs")
    analyse_alone_time_s: float = Field(description="as many threads as far ones, all of it near")
    near_copy_bandwidth_bytes_per_s: float = Field(description="near copies by all threads")
    transfer_bandwidth_bytes_per_s: float = Field(description="far threads copy near to far")
    far_read_bandwidth_bytes_per_s: float = Field(description="far threads read far memory")
    generate_time_s: float
    transfer_time_s: float
    analyse_time_s: float
    total_time_s: float
    published: list[PublishedError] = Field(default_factory=list)
