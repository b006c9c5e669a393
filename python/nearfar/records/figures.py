"""Figures of results: plain numbers, next to their intervals and origins.

A key that carries a unit (``latency_ns``) is a plain number; ``intervals[key]`` is its 95 %
interval and ``provenance[key]`` gives its origin. Members of lists have the same form.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

if TYPE_CHECKING:
    from polars import DataFrame

    from nearfar.stats import Estimate  # imports NumPy, which takes 0.1 s


#: Statistics that have no 95 % interval.
EXTREMES = ("best", "largest")


#: The statistic of a ratio of paired values that are too few for an interval.
RATIO_OF_MEDIANS = "ratio of medians"
#: Statistics of repeats. They have a 95 % interval if there are enough repeats.
_OF_REPEATS = ("median", "mean", "lower quartile", RATIO_OF_MEDIANS)
#: Minimum number of repeats for an interval. With probability 2/2^n, all of n repeats are on the
#: same side of the median. For five repeats this is 6.25 %, so that even the smallest and the
#: largest repeat enclose the median with a probability of less than 95 %.
MIN_REPEATS = 6


#: Numbers of a record and their ranges. Only a difference or a fitted line can be negative.
Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(gt=0)]


class Origin(StrEnum):
    """Origin of a number. Emulated is never shown as measured."""

    MEASURED = "measured"
    EMULATED = "emulated"
    MODELLED = "modelled"
    SIMULATED = "simulated"
    #: stated by firmware, kernel, hypervisor or a data sheet; not measured
    CLAIMED = "claimed"


class Provenance(BaseModel):
    """Where one number comes from."""

    model_config = ConfigDict(extra="forbid")

    origin: Origin
    statistic: str = Field(
        description="median, mean, lower quartile, ratio of medians, best, largest, count, fit, "
        "model or simulation; claim: stated by a source"
    )
    samples: int = Field(description="number of repeats; 0: none")
    spread: float | None = Field(
        default=None, description="interquartile range over median of the repeats"
    )
    outliers: int = Field(
        default=0, description="repeats beyond Tukey's fences; they are not dropped"
    )
    seed: int | None = Field(default=None, description="seed of the random order, if there is one")
    machine: str = Field(default="", description="id of the machine record")
    note: str = Field(default="", description="what a reader must know to use the number")

    def is_sampled(self) -> bool:
        """Whether the number is a statistic of repeats, which requires an interval."""
        return self.statistic in _OF_REPEATS and self.samples > 0

    @field_validator("spread")
    @classmethod
    def _finite_or_none(cls, spread: float | None) -> float | None:
        """Replace infinity (the spread around a median of zero) by None: JSON has no infinity."""
        return spread if spread is not None and math.isfinite(spread) else None


def claimed(note: str) -> Provenance:
    """Provenance of a stated figure; ``note`` names the source."""
    return Provenance(origin=Origin.CLAIMED, statistic="claim", samples=0, note=note)


class ObservationModel(BaseModel):
    """Base of single observations, which have neither interval nor provenance."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class FigureModel(BaseModel):
    """Base of all results."""

    # Most verbs validate few of the many results, and each start of nearfar imports all of them.
    model_config = ConfigDict(extra="forbid", defer_build=True)

    #: Keys of requested numbers. These are conditions, not figures.
    requested: ClassVar[frozenset[str]] = frozenset()
    #: Keys of text or numbers that are neither figures nor conditions of the figures next to them.
    remarks: ClassVar[frozenset[str]] = frozenset()
    #: Keys of figures of which no value is better here, such as the traffic of a program.
    undirected: ClassVar[frozenset[str]] = frozenset()
    #: Lists whose first member repeats the figures of this object.
    first_repeats_own: ClassVar[frozenset[str]] = frozenset()

    intervals: dict[str, tuple[Finite, Finite]] = Field(default_factory=dict)
    provenance: dict[str, Provenance] = Field(default_factory=dict)

    def interval(self, key: str) -> tuple[float, float] | None:
        """Return the 95 % interval of a key; None if there is none.

        An extreme has no interval, and neither has a statistic of fewer than six repeats. Old
        records may contain such intervals, which are ignored.
        """
        entry = self.provenance.get(key)
        if entry is None:
            return self.intervals.get(key)
        few = entry.is_sampled() and entry.samples < MIN_REPEATS
        return None if few or entry.statistic in EXTREMES else self.intervals.get(key)

    def to_polars(self) -> DataFrame:
        """Return the figures as a polars table, one row each, with interval and origin.

        Raises MachineError with the next step if polars is not installed.
        """
        from nearfar.records.frame import frame_of_model

        return frame_of_model(self)

    def estimate(self, key: str) -> tuple[float, float, float]:
        """Return ``(value, low, high)`` of a key; without an interval all three are the value."""
        value = float(getattr(self, key))
        low, high = self.interval(key) or (value, value)
        return value, low, high


Result = TypeVar("Result", bound=FigureModel)


def with_origin(model: Result, provenance: Provenance) -> Result:
    """Return the model, with this provenance for each of its figures that has none."""
    for key in type(model).model_fields:
        if isinstance(getattr(model, key), float) and key not in model.requested:
            model.provenance.setdefault(key, provenance)
    return model


class Answer(FigureModel):
    """Base of computed results: predictions and simulations."""

    remarks: ClassVar[frozenset[str]] = frozenset({"limits", "warnings"})

    limits: list[str] = Field(default_factory=list, description="assumptions and omitted effects")
    warnings: list[str] = Field(
        default_factory=list, description="inconsistent inputs, and data outside of a fit"
    )


class Figures(Answer):
    """An answer without a model of its own: any figures, each under a key that ends in its unit."""

    model_config = ConfigDict(extra="allow")


def modelled(
    note: str, limits: list[str], **figures: float | tuple[float, float, float]
) -> Figures:
    """Return a model's result: a value by key, or a value with its low and high bound."""
    bounds = {key: f if isinstance(f, tuple) else (f, f, f) for key, f in figures.items()}
    origin = Provenance(origin=Origin.MODELLED, statistic="model", samples=0, note=note)
    return Figures.model_validate(
        {
            **{key: value for key, (value, _, _) in bounds.items()},
            "intervals": {key: (low, high) for key, (_, low, high) in bounds.items() if low < high},
            "provenance": dict.fromkeys(bounds, origin),
            "limits": limits,
        }
    )


def figure_fields(
    origin: Origin,
    estimates: dict[str, Estimate],
    *,
    seed: int | None = None,
    machine: str = "",
    note: str = "",
) -> dict[str, Any]:
    """Return the keyword arguments of a FigureModel: value, interval and provenance by key."""
    return {
        **{key: e.value for key, e in estimates.items()},
        "intervals": {key: e.interval for key, e in estimates.items() if e.interval},
        "provenance": {
            key: Provenance(
                origin=origin,
                statistic=e.statistic,
                samples=e.samples,
                spread=e.spread,
                outliers=e.outliers,
                seed=seed,
                machine=machine,
                note=note,
            )
            for key, e in estimates.items()
        },
    }
