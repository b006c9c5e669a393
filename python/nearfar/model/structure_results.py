"""Results of `predict structure`: an operation's time in far memory, and slowdowns against DRAM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import Field

from nearfar.model import slowdowns
from nearfar.model.host_costs import HostCosts
from nearfar.model.map_work import Constant, mark_binding, time_term
from nearfar.model.pointer_structures import (
    DRIFT,
    Memory,
    OperationTime,
    Shape,
    Software,
    loads_of,
    operation_time,
)
from nearfar.model.results import CALIBRATION_LEVELS, Prediction, Term, modelled
from nearfar.records.choices import SetName
from nearfar.records.figures import FigureModel, Positive

BaselineName = Literal["twin", "same_code"]
TITLES = {
    "twin": "its volatile counterpart in near memory, as malloc would have it",
    "same_code": "the same code in near memory, flushes, fences and logs included",
}
_LIMITS = [
    "one thread; stores wait for nothing but fences; bandwidth binds streams alone",
    "idle latencies of the device; 4 KiB pages",
]
_NO_SOFTWARE = (
    "fences and software cannot be separated here: all of the time in cache went for fences, so "
    "that software, and with it time and slowdown, are too low, and their intervals too narrow"
)
#: Below this fraction of the time on near memory, software was subtracted with the fences.
_TOO_LITTLE = 0.02
_ENDS = ("low", "value", "high")


class Reading(FigureModel):
    """One reading of what "against DRAM" means."""

    baseline: BaselineName
    near_time_s: Positive = Field(description="an operation on that baseline")
    slowdown: Positive
    published_slowdown: float | None = Field(None, description="mean that the paper reports")
    reason: str | None = Field(None, description="why both differ, where they do")


class StructurePrediction(Prediction):
    """One operation of a set of integers in far memory."""

    structure: SetName
    size_entries: int
    update_share: float
    far: str
    host: str
    time_s: Positive = Field(description="an operation")
    slowdown: Positive = Field(description="against the volatile counterpart in near memory")
    readings: list[Reading] = Field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """A counted structure, its software, and those of its volatile counterpart."""

    structure: SetName
    entries: int
    update_percent: int
    shape: Shape
    software: Software
    twin_shape: Shape
    twin_software: Software


def predict(
    case: Case, costs: HostCosts, near: Memory, far: Memory, published: float | None = None
) -> StructurePrediction:
    """An operation in `far`, and both baselines in `near`."""
    there = _Side(case.shape, case.software, costs, far)
    twin = _Side(case.twin_shape, case.twin_software, costs, near)
    same = _Side(case.shape, case.software, costs, near)
    readings = [_reading("twin", there, twin), _reading("same_code", there, same)]
    found = there.found
    if published is not None:
        for reading in readings:
            reading.published_slowdown = published
            reading.reason = _reason(case, reading, far, published)
    slowdown = readings[0].estimate("slowdown")
    return StructurePrediction(
        structure=case.structure,
        size_entries=case.entries,
        update_share=case.update_percent / 100,
        far=far.name,
        host=costs.name,
        calibration_level=1,
        calibration=f"1, {CALIBRATION_LEVELS[1]}",
        readings=readings,
        terms=terms(found, case, far),
        limits=_limits(same.found),
        **modelled(
            {"time_s": (found.parts.total, found.low, found.high), "slowdown": slowdown},
            samples=0,
            note="general form; interval: assumptions, ranges of figures",
        ),
    )


@dataclass(frozen=True)
class _Side:
    """One side of the comparison: an operation in some memory."""

    shape: Shape
    software: Software
    costs: HostCosts
    memory: Memory

    @cached_property
    def found(self) -> OperationTime:
        return operation_time(self.shape, self.software, self.costs, self.memory)

    def at(self, software_end: str, memory_end: str, longer: float = 1.0) -> float:
        """Seconds with software and memory at one end of their ranges, and longer software."""
        own = self.software.at
        by = longer * (getattr(own, software_end) / own.value if own.value else 1.0)
        software = self.software.slower(Constant(by, by, by))
        memory = self.memory.at(memory_end)
        return operation_time(self.shape, software, self.costs, memory).parts.total


def _reading(name: BaselineName, there: _Side, here: _Side) -> Reading:
    """A ratio. Host and software are uncertain for both sides alike, the device for one.

    A volatile counterpart is other code, timed separately: its software varies independently.
    """
    value = there.found.parts.total / here.found.parts.total
    drifts = (1 - DRIFT, 1.0, 1 + DRIFT) if name == "twin" else (1.0,)
    ratios = [
        value,
        there.found.low / here.found.low,
        there.found.high / here.found.high,
        *(
            there.at(software, device) / here.at(software, "value", drift)
            for software in _ENDS
            for device in _ENDS
            for drift in drifts
        ),
    ]
    return Reading(
        baseline=name,
        **modelled(
            {
                "near_time_s": (here.found.parts.total, here.found.low, here.found.high),
                "slowdown": (value, min(ratios), max(ratios)),
            },
            samples=0,
        ),
    )


def _reason(case: Case, reading: Reading, far: Memory, published: float) -> str:
    disk, counts = far.sync is not None, case.shape.counts
    waits = counts.flushes if disk else counts.fences
    return slowdowns.reason(
        case.structure,
        reading.intervals["slowdown"],
        published,
        same_code=reading.baseline == "same_code",
        waits=waits / counts.changed if counts.changed else 0.0,
        disk=disk,
    )


def _limits(near: OperationTime) -> list[str]:
    no_software = near.parts.software < _TOO_LITTLE * near.parts.total
    return [*_LIMITS, _NO_SOFTWARE] if no_software else _LIMITS


def terms(found: OperationTime, case: Case, far: Memory) -> list[Term]:
    """Parts of the time, then the counts behind them."""
    p = found.parts
    parts = [
        time_term("software", p.software, "an operation in cache"),
        time_term("streams", p.streams, "lines in turn, beyond software that hides them"),
        time_term("cache hits", p.cache_hits, "beyond the first level"),
        time_term("near misses", p.near_misses, "loads of volatile parts"),
        time_term("far misses", p.far_misses, f"loads from {far.name}"),
        time_term("page walks", p.walks, ""),
        time_term(
            "fences" if far.sync is None else "msyncs",
            p.fences,
            "beyond what runs on under them" if far.sync is None else "one a flush",
        ),
        time_term("lines", p.lines, "flushed beyond one a fence"),
    ]
    return mark_binding(parts) + _counts(found, case)


def _counts(found: OperationTime, case: Case) -> list[Term]:
    """Counts of an operation."""
    counts = case.shape.counts
    levels = [v.levels[-1].load_misses for v in counts.variants]
    fars = [v.far_load_misses for v in counts.variants]
    return [
        Term(name="loads an operation", value=loads_of(counts), unit="ratio"),
        Term(
            name="misses an operation",
            value=sum(levels) / len(levels),
            unit="ratio",
            note=f"{min(levels):.3f} to {max(levels):.3f} over assumptions",
        ),
        Term(name="far misses an operation", value=sum(fars) / len(fars), unit="ratio"),
        Term(name="page walks an operation", value=counts.walks, unit="ratio"),
        Term(name="fences an operation", value=counts.fences, unit="ratio"),
        Term(name="lines flushed an operation", value=counts.lines, unit="ratio"),
        Term(name="flushes an operation", value=counts.flushes, unit="ratio"),
        Term(name="operations under way", value=found.overlap, unit="ratio"),
    ]
