"""Device profiles and hosts: figures of a memory or of a CPU, each with its source.

``docs/formats/profile.md`` describes the file. A key ends in its unit. A curve has ``_by_`` in its
key and names its coordinates. What is unknown is absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from nearfar.errors import BadInputError
from nearfar.records.figures import Origin
from nearfar.records.keys import Direction

#: Incremented when a reader of the old version could misread the new one.
SCHEMA_VERSION = 1

#: Units by the suffix of a key, longest suffix first.
_UNITS = {
    "bytes_per_s": "B/s",
    "operations_per_s": "1/s",
    "pJ_per_bit": "pJ/bit",
    "read_share": "share",
    "percentile": "percentile",
    "bytes": "B",
    "cycles": "cycles",
    "ns": "ns",
    "hz": "Hz",
    "mA": "mA",
    "V": "V",
}
#: Which values of a unit are better; units not listed have no direction.
_BETTER: dict[str, Direction] = {
    "B/s": "higher",
    "1/s": "higher",
    "Hz": "higher",
    "ns": "lower",
    "cycles": "lower",
    "pJ/bit": "lower",
    "mA": "lower",
}
#: Keys whose unit does not give the direction: a clock is the unit of timings, and refreshes may be
#: more or less frequent.
_BETTER_BY_KEY: dict[str, Direction | None] = {
    "clock_ns": None,
    "tREFI_ns": None,
    "tREFI_cycles": None,
    "price_per_gib": "lower",
    "endurance_writes": "higher",
    "overwrite_stall_interval_writes": "higher",
    "read_parallelism": "higher",
}
#: Timings of a memory, given in ns or in cycles of its clock.
_TIMING = re.compile(r"(t[A-Z0-9]\w*|CL|CWL|burst)_cycles")
#: Keys of counts end in one of these words.
COUNT_SUFFIXES = (
    "threads",
    "cores",
    "sockets",
    "ways",
    "writes",
    "level",
    "channels",
    "queue_depth",
    "banks",
    "command_buses",
    "command_clocks",
    "refresh_sets",
    "ranks",
    "dimms",
    "parallelism",
    "groups",
    "chips",
    "entries",
)
_PRICE = "price_per_gib"

#: Begins the note of a figure that was measured briefly while other programs ran. Its value is the
#: best that was seen; its range extends to what an undisturbed machine may reach.
DISTURBED = "other programs ran"

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
FigureKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Range = tuple[Number, Number]


def _iso_date(text: str) -> str:
    """Return a year, month, day or time unchanged. Raises ValueError for anything else."""
    if not re.fullmatch(r"\d{4}(-\d{2}(-\d{2}([T ].+)?)?)?", text, re.ASCII):
        raise ValueError(f"{text} is not an ISO 8601 date such as 2024, 2024-05 or 2024-05-31")
    datetime.fromisoformat(text + "YYYY-01-01"[len(text) :])  # completes a year or a month
    return text


Date = Annotated[Text, AfterValidator(_iso_date)]


def unit_of(key: str) -> str | None:
    """Return the unit that a key ends in, or None. A price's currency is not part of its key."""
    for end, unit in _UNITS.items():
        if key == end or key.endswith(f"_{end}"):
            return unit
    is_count = any(key == end or key.endswith(f"_{end}") for end in COUNT_SUFFIXES)
    return "count" if is_count else None


def better_by_unit(key: str) -> Direction | None:
    """Return which values of a profile's key are better; None if it has no direction."""
    return _BETTER_BY_KEY[key] if key in _BETTER_BY_KEY else _BETTER.get(unit_of(key) or "")


def timing_of(key: str) -> str | None:
    """Return the timing of a key in cycles of ``clock_ns``: ``tRCD`` for ``tRCD_cycles``."""
    found = _TIMING.fullmatch(key)
    return found[1] if found else None


def _unit_error(key: str, unit: str) -> str | None:
    if key == _PRICE:
        right = re.fullmatch(r"[A-Z]{3}/GiB", unit) is not None
        return None if right else f"a price has a unit such as EUR/GiB, not {unit}"
    expected = unit_of(key)
    if expected is None:
        return "the key does not end in a unit that profiles know"
    return None if unit == expected else f"the key says {expected}, the unit {unit}"


def _takes_time(key: str) -> bool:
    """Whether the key is a latency or a bandwidth, which models divide by and multiply with."""
    return ("latency" in key and unit_of(key) in ("ns", "cycles")) or (
        "bandwidth" in key and unit_of(key) == "B/s"
    )


class Figure(BaseModel):
    """One number, or one curve, with where it comes from.

    ``value`` is a scalar, ``low`` and ``high`` its range. A curve has ``x``, the names of its
    coordinates, and ``points``: the coordinates in that order, then the value; ``ranges`` are the
    ranges of the points, in their order.
    """

    model_config = ConfigDict(extra="forbid")

    unit: Text
    value: Number | None = None
    low: Number | None = None
    high: Number | None = None
    x: list[FigureKey] | None = Field(default=None, min_length=1)
    points: list[list[Number]] | None = Field(default=None, min_length=1)
    ranges: list[Range] | None = None
    source: Text = Field(description="a key of the file's table of sources")
    confidence: Literal["A", "B", "C"] = Field(
        description="A: measured here or read off published data; B: quoted; C: recalled, estimated"
    )
    origin: Origin | None = Field(default=None, description="where nearfar made the number")
    date: Date | None = Field(default=None, description="ISO 8601, as exact as is known")
    note: Text | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.value is None) == (self.points is None):
            raise ValueError("give either value or points")
        if self.value is not None:
            self._check_scalar(self.value)
        if self.points is not None:
            self._check_curve(self.points)
        return self

    def _check_scalar(self, value: float) -> None:
        if self.x is not None or self.ranges is not None:
            raise ValueError("x and ranges belong to points")
        if (self.low is None) != (self.high is None):
            raise ValueError("a range has both low and high")
        low, high = self.interval()
        if not low <= value <= high:
            raise ValueError(f"the value {value:g} is outside its range {low:g} to {high:g}")

    def _check_curve(self, points: list[list[float]]) -> None:
        if self.x is None:
            raise ValueError("points need x, the names of their coordinates")
        if self.low is not None or self.high is not None:
            raise ValueError("low and high belong to a value; points have ranges")
        unknown = [name for name in self.x if unit_of(name) is None]
        if unknown:
            raise ValueError(f"the coordinate {unknown[0]} does not end in a unit")
        if len(set(self.x)) != len(self.x):
            raise ValueError("x names a coordinate twice")
        if any(len(point) != len(self.x) + 1 for point in points):
            raise ValueError(f"every point needs {len(self.x)} coordinates and a value")
        if len({tuple(point[:-1]) for point in points}) != len(points):
            raise ValueError("two points have the same coordinates")
        if self.ranges is None:
            return
        if len(self.ranges) != len(points):
            raise ValueError("ranges must be as many as points")
        pairs = zip(points, self.ranges, strict=True)
        if any(not low <= point[-1] <= high for point, (low, high) in pairs):
            raise ValueError("a point is outside its range")

    def is_disturbed(self) -> bool:
        """Whether other programs ran while it was measured, so that it may be better."""
        return DISTURBED in (self.note or "")

    def is_positive(self) -> bool:
        """Whether the value and its range, or those of all points, are above 0."""
        lows = [self.interval()[0]] if self.points is None else [p[-1] for p in self.points]
        return min(lows + [low for low, _ in self.ranges or []]) > 0

    def interval(self) -> tuple[float, float]:
        """Return the range of a scalar; without a range, the value twice."""
        value = self.value if self.value is not None else 0.0
        return (
            self.low if self.low is not None else value,
            self.high if self.high is not None else value,
        )


class Datasheet(BaseModel):
    """Base of devices and hosts: figures by key, and the sources that they name."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = SCHEMA_VERSION
    kind: Literal["device", "host"]
    name: Text
    title: Text
    description: Text = Field(description="what it is, and what is missing")
    machine: Text | None = Field(default=None, description="what it was seen on")
    sources: dict[FigureKey, Text] = Field(default_factory=dict)
    figures: dict[FigureKey, Figure] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check_figures("figures", self.figures)
        return self

    def _check_figures(self, where: str, figures: Mapping[str, Figure]) -> None:
        """Raise ValueError for a figure that contradicts its key or has no source."""
        for key, figure in figures.items():
            complaint = _unit_error(key, figure.unit)
            if complaint is None and ("_by_" in key) != (figure.points is not None):
                complaint = "a key with _by_ belongs to points, any other to a value"
            if complaint is None and figure.source not in self.sources:
                complaint = f"the source {figure.source} is not in the table of sources"
            if complaint is None and key == _PRICE and figure.date is None:
                complaint = "a price needs a date"
            if complaint is None and _takes_time(key) and not figure.is_positive():
                complaint = "a latency or a bandwidth must be positive; leave unknown figures out"
            if complaint is not None:
                raise ValueError(f"{where}.{key}: {complaint}")

    def figure(self, key: str) -> Figure:
        """Return the figure of a key. Raises BadInputError if the profile lacks it."""
        found = self.figures.get(key)
        if found is None:
            raise BadInputError(
                f"the {self.kind} {self.name} has no figure {key}",
                f"run `nearfar show {self.name}` for its figures; use another, or write the figure "
                "with its source into a copy of the file and name that file",
            )
        return found

    def scalar(self, key: str) -> float:
        """Return the value of a scalar figure. Raises BadInputError if there is none."""
        value = self.figure(key).value
        if value is None:
            raise BadInputError(
                f"{key} of {self.name} is a curve, but a single number is required",
                "name a key without _by_",
            )
        return value

    def curve(self, key: str, **held: float) -> list[tuple[float, float]]:
        """Return coordinate and value of the points whose other coordinates are ``held``, in order.

        Raises BadInputError unless the figure is a curve with one free coordinate and matching
        points.
        """
        figure = self.figure(key)
        names = figure.x or []
        free = [i for i, name in enumerate(names) if name not in held]
        if figure.points is None or len(free) != 1 or not held.keys() <= set(names):
            raise BadInputError(
                f"{key} of {self.name} has the coordinates {', '.join(names) or '(none)'}; all "
                f"but one must be given, not {', '.join(held) or '(none)'}",
                f"run `nearfar show {self.name}`",
            )
        kept = [p for p in figure.points if all(p[names.index(k)] == v for k, v in held.items())]
        if not kept:
            place = ", ".join(f"{name} = {value:g}" for name, value in held.items())
            raise BadInputError(
                f"{key} of {self.name} has no point with {place}", f"run `nearfar show {self.name}`"
            )
        return sorted((point[free[0]], point[-1]) for point in kept)

    def timing_ns(self, name: str) -> float:
        """Return a timing such as ``tRCD``, given in ns or in cycles of ``clock_ns``.

        Raises BadInputError if it is given in neither, or in both and they disagree.
        """
        if f"{name}_cycles" not in self.figures:
            return self.scalar(f"{name}_ns")
        counted = self.scalar(f"{name}_cycles") * self.scalar("clock_ns")
        if f"{name}_ns" not in self.figures:
            return counted
        stated = self.scalar(f"{name}_ns")
        if abs(stated - counted) > self.scalar("clock_ns"):
            raise BadInputError(
                f"the {self.kind} {self.name} has {name}_ns = {stated:g}, but {name}_cycles times "
                f"clock_ns is {counted:g} ns",
                "keep the value that its source gives",
            )
        return stated

    def source_of(self, key: str) -> str:
        """Return the full source of a figure, for display next to it."""
        return self.sources[self.figure(key).source]


class Profile(Datasheet):
    """A memory as one source describes it."""

    kind: Literal["device"] = "device"

    def bandwidth_alone(self, kernel: str) -> float | None:
        """Return the bandwidth of one thread in B/s; None if it is not specified."""
        key = f"{kernel}_bandwidth_by_threads_bytes_per_s"
        if key not in self.figures or self.figures[key].x != ["threads"]:
            return None
        return dict(self.curve(key)).get(1.0)

    def largest_bandwidth_alone(self, kernel: str) -> float | None:
        """Return the bandwidth of one thread in B/s. If other programs ran while it was measured,
        return the upper end of its range: what one thread may reach without them."""
        alone = self.bandwidth_alone(kernel)
        figure = self.figures.get(f"{kernel}_bandwidth_by_threads_bytes_per_s")
        if alone is None or figure is None or not figure.is_disturbed() or not figure.ranges:
            return alone
        places = [point[0] for point in figure.points or []]
        return figure.ranges[places.index(1.0)][1]


class HostMeasurement(BaseModel):
    """When and how often the figures of a host were measured."""

    model_config = ConfigDict(extra="forbid")

    started: Date
    ended: Date
    epochs: Annotated[int, Field(gt=0)]
    provisional: bool = Field(description="too short to include what changes within minutes")
    disturbed: bool = Field(default=False, description="other programs ran on this machine")


class Host(Datasheet):
    """A processor and what lies between it and its memory.

    ``memories``: the figures of its memories by tier and page size, as of a device profile.
    """

    kind: Literal["host"] = "host"
    measured: HostMeasurement | None = None
    memories: dict[Text, dict[FigureKey, Figure]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent_memories(self) -> Self:
        for tier, figures in self.memories.items():
            self._check_figures(f"memories.{tier}", figures)
        return self
