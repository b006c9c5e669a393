"""Structures predicted and measured on this machine, and predicted on memory that it lacks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from nearfar.records.figures import Amount, Count, FigureModel, Finite, Positive, Size


class StructurePoint(FigureModel):
    """One operation at one size, predicted before it was measured."""

    what: str = Field(description="operation and structure")
    tier: str
    entries: Size
    predicted_latency_ns: Positive
    latency_ns: Positive = Field(description="measured after that, an operation")
    relative_error: Finite = Field(description="predicted over measured, less 1")
    covered: bool = Field(description="the measured time lies in the predicted interval")


class DeviceSlowdown(FigureModel):
    """An operation in a device's memory against its volatile counterpart in this machine's."""

    structure: str
    entries: Size
    device: str
    time_s: Positive
    slowdown: Positive


class PublishedSlowdown(FigureModel):
    """A mean that a paper reports, and the prediction for its machine under one reading."""

    remarks: ClassVar[frozenset[str]] = frozenset({"reason"})

    structure: str
    entries: Size
    device: str
    baseline: str = Field(description="what the paper's DRAM is assumed to run: twin or same_code")
    slowdown: Positive
    published_slowdown: Positive = Field(description="no parameter is fitted to it")
    reason: str = Field(description="why both differ, where they do")


class StructuresResult(FigureModel):
    """All points of one run, the devices, and a paper's machine."""

    predicted_at: str = Field(description="UTC, ISO 8601: before the first point was measured")
    effective_last_cache_bytes: Positive
    mean_error: Amount = Field(description="mean of |relative error| over the points")
    worst_error: Amount
    covered_points: Count
    points: list[StructurePoint]
    devices: list[DeviceSlowdown]
    published_host: str | None = Field(None, description="the paper's machine")
    published: list[PublishedSlowdown] = Field(default_factory=list)
