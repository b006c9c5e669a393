"""Results of predictions: numbers with intervals, the terms behind them, the calibration level."""

from __future__ import annotations

from math import isfinite
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from nearfar.errors import BadInputError
from nearfar.records.depth import LoadedTier
from nearfar.records.figures import (
    Amount,
    Answer,
    FigureModel,
    Origin,
    Positive,
    Provenance,
    Share,
    Size,
)

#: The calibration levels: what a prediction is computed from.
CALIBRATION_LEVELS = (
    "profile only: nothing of this work was measured",
    "software cost measured here",
    "a measured row of the same version",
    "five contention rows, and a measured row where software counts",
)


class Term(BaseModel):
    """One quantity in a prediction; ``binds`` if it decides the result."""

    model_config = ConfigDict(extra="forbid")

    name: str
    value: float
    unit: str
    binds: bool = False
    note: str = ""


class Prediction(Answer):
    """Base of all predictions."""

    calibration_level: int = Field(
        ge=0, le=3, description="0 (profiles only) to 3 (most is measured)"
    )
    calibration: str = Field(description="what the prediction stands on, in words")
    terms: list[Term] = Field(default_factory=list)


class ContentionPrediction(Prediction):
    """Bandwidths of both sides copying at once, summed over the threads of a side."""

    near_threads: int
    far_threads: int
    near_bandwidth_bytes_per_s: float
    far_bandwidth_bytes_per_s: float


class SplitPrediction(Prediction):
    """One sweep over an array whose rows are split between two memories."""

    version: str
    model: str
    far_rows: int
    near_threads: int
    far_threads: int
    near_time_s: float
    far_time_s: float
    total_time_s: float


class PipelineSplit(FigureModel):
    """All iterations with one split of the threads."""

    near_threads: int
    far_threads: int
    generate_time_s: float
    transfer_time_s: float
    analyse_time_s: float
    total_time_s: float
    binds: str = Field(description="generate, or transfer + analyse")
    regret: float = Field(description="total over that of the best split, less 1")


class PipelinePrediction(Prediction):
    """The pipeline with every split of the threads."""

    best_near_threads: int
    splits: list[PipelineSplit]


class InterleavedSite(FigureModel):
    """A site, and the fraction of it in near memory."""

    name: str
    near_share: Share
    size_bytes: Amount
    read_bytes: Amount
    write_bytes: Amount


class InterleavePrediction(Answer):
    """The fastest placement of sites in fractions, and simpler placements."""

    time_s: Positive
    all_near_time_s: Positive | None = Field(None, description="absent if it does not fit")
    all_far_time_s: Positive | None = None
    whole_sites_time_s: Positive | None = Field(None, description="each site near or far")
    uniform_time_s: Positive | None = Field(None, description="one fraction for all sites")
    uniform_near_share: Share | None = None
    steps: Size = Field(description="parts of a site")
    exact: bool = Field(description="no placement is faster; false: the search was stopped")
    upper_bounds: list[str] = Field(
        default_factory=list,
        description="keys of times at the end of a curve that is not saturated: at most this long",
    )
    sites: list[InterleavedSite]
    near: LoadedTier
    far: LoadedTier


def modelled(
    figures: dict[str, tuple[float, float, float]], *, samples: int, note: str = ""
) -> dict[str, Any]:
    """Keyword arguments of a FigureModel model: ``(value, low, high)`` of each key, as modelled.

    ``samples`` is the number of measured rows behind them. Raises BadInputError if a figure is not
    finite: JSON has no infinity.
    """
    for key, triple in figures.items():
        if not all(map(isfinite, triple)):
            raise BadInputError(
                f"{key} comes out as {triple[0]:g} ({triple[1]:g} to {triple[2]:g})",
                "look for an input that is far too large or too small",
            )
    return {
        **{key: value for key, (value, _, _) in figures.items()},
        "intervals": {key: (low, high) for key, (_, low, high) in figures.items()},
        "provenance": {
            key: Provenance(origin=Origin.MODELLED, statistic="model", samples=samples, note=note)
            for key in figures
        },
    }
