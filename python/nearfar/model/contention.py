"""Bandwidth of two sides that copy concurrently, fitted to a few measured rows.

Equation: with all N threads running (d near, v far, d + v = N), a thread runs at x_full(t) bytes/s.
t is the number of threads on its side. x_full is a form of `forms` for each side, fitted to the
rows with N threads. With fewer threads, memory is a closed queue with fewer customers:
  1 / x(d, v) = 1 / x_full · (1 - w + w·(d + v) / N),
w is the fraction of the time of a byte that is spent queueing. Rows with fewer than N threads
determine w; without such rows w = 1/2 and the interval spans 0 to 1. The bandwidth of a side is the
number of its threads times x.
Mixed copies (far threads copy between both memories) are predicted from rows whose far threads
copied from far to far memory. A mixed thread uses each memory for half of its time: near memory has
the load of d + v/2 near threads, and the speed of a far thread is the harmonic mean of the speed of
a near thread under this load and that of a far thread.
Source: the competition benchmark and its tables (Oslo thesis), read with 1 MB = 10^6 bytes: the
sums of its far-far table then stay below the STREAM rate of the same machine's near memory.
Limits: at most N threads; at least one on each side. The w of 1/2 is an assumption.
Mixed copies: 8 % off in the published tables; both directions are treated alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nearfar.errors import BadInputError
from nearfar.model import forms
from nearfar.model.results import ContentionPrediction, Term, modelled

VERSION: Final = 1
#: Rows required for the third calibration level.
FULL_CALIBRATION = 5
#: More threads than any machine has; a fit is checked at every smaller count.
MAX_THREADS = 65536
#: In logarithms: a larger interval carries no information, and its ends overflow.
_MAX_HALF_WIDTH = 100.0
#: Plausible bytes/s of a thread; the bounds are safe to divide and scale.
_SLOWEST, _FASTEST = 1e-120, 1e120

Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ContentionRow(_Strict):
    """One row that the model was fitted to."""

    near_threads: Count
    far_threads: Count
    near_bandwidth_bytes_per_s: Positive
    far_bandwidth_bytes_per_s: Positive


class Side(_Strict):
    """The law of one side: ln of a thread's speed in bytes/s, and its uncertainty."""

    form: str
    coefficients: list[Finite]
    half_width: Annotated[float, Field(ge=0, le=_MAX_HALF_WIDTH, allow_inf_nan=False)] = Field(
        description="of the 95 % interval, relative"
    )
    leave_one_out_mean: NotNegative = Field(description="mean |error|, form chosen anew, relative")
    leave_one_out_worst: NotNegative
    leave_two_out_mean: NotNegative | None
    queueing: Share
    queueing_low: Share
    queueing_high: Share

    @model_validator(mode="after")
    def _consistent(self) -> Side:
        if self.form not in forms.BASES:
            raise ValueError(f"unknown form {self.form}")
        if len(self.coefficients) != forms.coefficients_of(self.form):
            raise ValueError(
                f"the form {self.form} has {forms.coefficients_of(self.form)} coefficients"
            )
        if not self.queueing_low <= self.queueing <= self.queueing_high:
            raise ValueError("the queue's share lies outside its interval")
        return self

    def full_speed(self, threads: float) -> float:
        """Bytes/s of a thread at full occupancy with this number of threads on its side."""
        return forms.Form(self.form, tuple(self.coefficients))(threads)


class ContentionModel(_Strict):
    """The file format that ``fit contention`` writes and all predictions about two sides read."""

    kind: Literal["nearfar-contention"] = "nearfar-contention"
    version: Literal[1] = 1
    full_threads: Annotated[int, Field(ge=2, le=MAX_THREADS)]
    rows: list[ContentionRow]
    near: Side
    far: Side

    @model_validator(mode="after")
    def _consistent(self) -> ContentionModel:
        sums = [row.near_threads + row.far_threads for row in self.rows]
        most = max(sums, default=0)
        if most != self.full_threads:
            raise ValueError(f"full_threads: {self.full_threads}, and the rows use at most {most}")
        if sums.count(self.full_threads) < forms.MIN_ROWS:
            raise ValueError(
                f"rows: {sums.count(self.full_threads)} use all {self.full_threads} threads, and a "
                f"model needs {forms.MIN_ROWS}"
            )
        for name, side in (("near", self.near), ("far", self.far)):
            counts = range(1, self.full_threads)
            law = forms.Form(side.form, tuple(side.coefficients))
            for threads, speed in zip(counts, law.at(counts), strict=True):
                if not _SLOWEST <= speed <= _FASTEST:
                    raise ValueError(
                        f"{name}.coefficients: {speed:g} bytes/s for each of {threads} threads"
                    )
        return self


@dataclass(frozen=True)
class SideSpeed:
    """Bytes/s of a thread of one side, with its interval and inputs."""

    value: float
    low: float
    high: float
    full: float
    queue_factor: float


def _speed(side: Side, threads: float, running: int, most: int) -> SideSpeed:
    """Speed of a thread among ``threads`` of its side, with ``running`` on both."""
    full = side.full_speed(threads)
    idle = 1 - running / most
    value = full / (1 - side.queueing * idle)
    low = full / (1 - side.queueing_low * idle) * math.exp(-side.half_width)
    high = full / (1 - side.queueing_high * idle) * math.exp(side.half_width)
    return SideSpeed(value, low, high, full, value / full)


def _check_threads(model: ContentionModel, near_threads: int, far_threads: int) -> None:
    if near_threads < 1 or far_threads < 1:
        raise BadInputError("either side needs a thread", "give at least one to each side")
    if near_threads + far_threads > model.full_threads:
        raise BadInputError(
            f"{near_threads} + {far_threads} threads are more than the {model.full_threads} that "
            "the model was fitted at",
            f"ask for at most {model.full_threads}, or fit rows that use more threads",
        )


def speeds(
    model: ContentionModel, near_threads: int, far_threads: int
) -> tuple[SideSpeed, SideSpeed]:
    """Speed of a near and of a far thread. Raises BadInputError beyond full occupancy."""
    _check_threads(model, near_threads, far_threads)
    running = near_threads + far_threads
    return (
        _speed(model.near, near_threads, running, model.full_threads),
        _speed(model.far, far_threads, running, model.full_threads),
    )


def mixed_speeds(
    model: ContentionModel, near_threads: int, far_threads: int
) -> tuple[SideSpeed, SideSpeed]:
    """The same if far threads copy between both memories, from a far-far model."""
    _, far = speeds(model, near_threads, far_threads)
    crowded = near_threads + far_threads / 2
    near = _speed(model.near, crowded, near_threads + far_threads, model.full_threads)
    value, low, high, full = (
        2 / (1 / getattr(near, field) + 1 / getattr(far, field))
        for field in ("value", "low", "high", "full")
    )
    return near, SideSpeed(value, low, high, full, far.queue_factor)


def level(model: ContentionModel) -> tuple[int, str]:
    """Calibration level of predictions of competition itself, and its text."""
    rows = len(model.rows)
    if rows >= FULL_CALIBRATION:
        return 3, f"{rows} contention rows"
    return 2, f"{rows} contention rows, fewer than {FULL_CALIBRATION}"


def predict(
    model: ContentionModel, near_threads: int, far_threads: int, *, mixed: bool = False
) -> ContentionPrediction:
    """Bandwidths of both sides. Raises BadInputError for thread counts the model does not cover."""
    pair = (mixed_speeds if mixed else speeds)(model, near_threads, far_threads)
    idle = near_threads + far_threads < model.full_threads
    near, far = (
        (threads * speed.value, threads * speed.low, threads * speed.high)
        for threads, speed in zip((near_threads, far_threads), pair, strict=True)
    )
    found_level, words = level(model)
    return ContentionPrediction(
        near_threads=near_threads,
        far_threads=far_threads,
        calibration_level=found_level,
        calibration=f"{found_level}: {words}",
        terms=[
            *_terms("near", near_threads, pair[0], idle=idle),
            *_terms("far", far_threads, pair[1], idle=idle),
        ],
        limits=_limits(model, idle=idle, mixed=mixed),
        **modelled(
            {"near_bandwidth_bytes_per_s": near, "far_bandwidth_bytes_per_s": far},
            samples=len(model.rows),
            note="a copied element counts as read and written, the write-allocate read does not",
        ),
    )


def _terms(side: str, threads: int, speed: SideSpeed, *, idle: bool) -> list[Term]:
    """Terms of the bandwidth of one side. ``idle``: not all threads of the machine run."""
    return [
        Term(
            name=f"a {side} thread at full occupancy",
            value=speed.full,
            unit="bytes/s",
            binds=not idle,
        ),
        Term(name=f"{side} threads", value=threads, unit="count"),
        Term(
            name=f"{side}: gain of a shorter queue",
            value=speed.queue_factor,
            unit="ratio",
            binds=idle,
        ),
    ]


def _limits(model: ContentionModel, *, idle: bool, mixed: bool) -> list[str]:
    limits = []
    if idle and model.near.queueing_low < model.near.queueing_high:
        limits.append(
            f"No row has fewer than {model.full_threads} threads: how much a thread gains from a "
            "shorter queue is unknown, and the interval spans nothing to all."
        )
    if mixed:
        limits.append(
            "Copies between both memories are derived from far-far rows, not fitted; the direction "
            "is not distinguished."
        )
    return limits
