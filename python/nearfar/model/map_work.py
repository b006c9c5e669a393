"""Shared parts of the models of a persistent hash map: the work, the constants, the result."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Field

from nearfar.errors import BadInputError
from nearfar.model.results import Prediction, Term
from nearfar.records.choices import MapModel, MapOperation
from nearfar.records.profile import Datasheet, Figure

#: Relative uncertainty of a device's figure without a range in its profile.
PROFILE_MARGIN = 0.10


@dataclass(frozen=True)
class MapWork:
    """A number of operations on a map, each executed once."""

    operation: MapOperation
    operations: int
    value_bytes: int

    def __post_init__(self) -> None:
        for name in ("operations", "value_bytes"):
            value = getattr(self, name)
            if value != value or math.isinf(value) or value != int(value) or value < 1:
                raise BadInputError(
                    f"{name} is {value}, and a positive whole number was needed",
                    f"give --{'ops' if name == 'operations' else 'value-bytes'} as 1 or more",
                )


@dataclass(frozen=True)
class Constant:
    """A number with its range, in base units."""

    value: float
    low: float
    high: float


NOTHING = Constant(0.0, 0.0, 0.0)


class MapPrediction(Prediction):
    """All operations of one kind on a map with as many entries."""

    operation: MapOperation
    model: MapModel
    operations: int
    value_bytes: int
    time_s: float = Field(description="of all operations")


def constant(sheet: Datasheet, key: str, scale: float = 1.0, margin: float = 0.0) -> Constant:
    """A figure times ``scale``; with its own range, or ``margin`` (relative) if that is wider.

    Raises BadInputError that names sheet and key if the figure is missing, a curve or zero.
    """
    value = sheet.scalar(key)
    if value <= 0:
        raise BadInputError(
            f"{key} of {sheet.name} is {value:g}, and a positive number was needed",
            "write the figure with its source into a copy of the file and name that file",
        )
    figure: Figure = sheet.figure(key)
    low, high = figure.interval()
    return Constant(
        value * scale,
        min(low, value * (1 - margin)) * scale,
        max(high, value * (1 + margin)) * scale,
    )


def difference(sheet: Datasheet, key: str, scale: float) -> Constant:
    """A difference of two measured times: 0 if noise exceeded it."""
    low, high = sheet.figure(key).interval()
    return Constant(sheet.scalar(key) * scale, low * scale, high * scale)


def time_term(name: str, seconds: float, note: str) -> Term:
    """A part of the time."""
    return Term(name=name, value=seconds, unit="s", note=note)


def mark_binding(terms: list[Term]) -> list[Term]:
    """The same terms, with the largest part of the time marked as binding."""
    times = [term for term in terms if term.unit == "s"]
    largest = max(times, key=lambda term: term.value)
    return [term.model_copy(update={"binds": term is largest}) for term in terms]
