"""The shape of every result: plain numbers, with their intervals and origins beside them.

A key that carries a unit (``latency_ns``) is a plain number; ``intervals[key]`` is its 95 %
interval and ``provenance[key]`` tells how it came about. Members of lists have the same shape.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

if TYPE_CHECKING:
    from nearfar.stats import Estimate  # which brings NumPy: a tenth of a second


#: Statistics that have no 95 % interval.
EXTREMES = ("best", "largest")


#: Numbers of a record, and what they can be. Only a difference or a fitted line can be negative.
Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(gt=0)]


class Origin(StrEnum):
    """How a number came about. Emulated is never shown as measured."""

    MEASURED = "measured"
    EMULATED = "emulated"
    MODELLED = "modelled"
    SIMULATED = "simulated"
    #: said by firmware, kernel or hypervisor; nobody measured it
    CLAIMED = "claimed"


class Provenance(BaseModel):
    """Where one number comes from."""

    model_config = ConfigDict(extra="forbid")

    origin: Origin
    statistic: str = Field(
        description="median, best, mean, count or fit; claim where nothing was sampled"
    )
    samples: int = Field(description="repeats behind the number")
    spread: float | None = Field(
        default=None, description="interquartile range over median of the repeats"
    )
    outliers: int = Field(default=0, description="repeats beyond Tukey's fences; kept, not dropped")
    seed: int | None = Field(default=None, description="of the random order, where there is one")
    machine: str = Field(default="", description="id of the machine record")
    note: str = Field(default="", description="what a reader must know to use the number")

    @field_validator("spread")
    @classmethod
    def _told_in_json(cls, spread: float | None) -> float | None:
        """Repeats around zero have no relative spread, and JSON no infinity."""
        return spread if spread is not None and math.isfinite(spread) else None


def claimed(note: str) -> Provenance:
    """Of a figure that somebody states: ``note`` tells who."""
    return Provenance(origin=Origin.CLAIMED, statistic="claim", samples=0, note=note)


class Observed(BaseModel):
    """Base of what was seen once, so that nothing in it has an interval or a provenance."""

    model_config = ConfigDict(extra="forbid")


class Shaped(BaseModel):
    """Base of all results."""

    model_config = ConfigDict(extra="forbid")

    #: keys of fractions that were asked for: conditions, with no repeats behind them
    asked: ClassVar[frozenset[str]] = frozenset()

    intervals: dict[str, tuple[Finite, Finite]] = Field(default_factory=dict)
    provenance: dict[str, Provenance] = Field(default_factory=dict)

    def interval(self, key: str) -> tuple[float, float] | None:
        """The 95 % interval of a key; None where there is none.

        An extreme has none: what old records keep for the best reaches down to the median.
        """
        entry = self.provenance.get(key)
        return None if entry and entry.statistic in EXTREMES else self.intervals.get(key)

    def estimate(self, key: str) -> tuple[float, float, float]:
        """``(value, low, high)`` of a key; without an interval all three are the value."""
        value = float(getattr(self, key))
        low, high = self.interval(key) or (value, value)
        return value, low, high


class Answer(Shaped):
    """Base of what is computed and not measured: predictions, simulations."""

    limits: list[str] = Field(default_factory=list, description="what it leaves out")
    warnings: list[str] = Field(
        default_factory=list, description="internal consistency, and what a fit does not reach"
    )


class Figures(Answer):
    """An answer that has no model of its own: figures by key, each key with its unit."""

    model_config = ConfigDict(extra="allow")


def modelled(
    note: str, limits: list[str], **figures: float | tuple[float, float, float]
) -> Figures:
    """What a model says: a value by key, or a value with its low and high bound."""
    told = {key: f if isinstance(f, tuple) else (f, f, f) for key, f in figures.items()}
    origin = Provenance(origin=Origin.MODELLED, statistic="model", samples=0, note=note)
    return Figures.model_validate({
        **{key: value for key, (value, _, _) in told.items()},
        "intervals": {key: (low, high) for key, (_, low, high) in told.items() if low < high},
        "provenance": dict.fromkeys(told, origin),
        "limits": limits,
    })  # fmt: skip


def quantities(
    origin: Origin,
    estimates: dict[str, Estimate],
    *,
    seed: int | None = None,
    machine: str = "",
    note: str = "",
) -> dict[str, Any]:
    """Keyword arguments of a Shaped model: each estimate's value, interval and provenance."""
    return {
        **{key: e.value for key, e in estimates.items()},
        "intervals": {
            key: (e.low, e.high) for key, e in estimates.items() if e.statistic not in EXTREMES
        },
        "provenance": {
            key: Provenance(
                origin=origin, statistic=e.statistic, samples=e.samples, spread=e.spread,
                outliers=e.outliers, seed=seed, machine=machine, note=note,
            )
            for key, e in estimates.items()
        },
    }  # fmt: skip
