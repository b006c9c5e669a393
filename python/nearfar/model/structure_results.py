"""What `predict structure` tells: an operation's time in far memory, and slowdowns against DRAM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from nearfar.model.host_costs import HostCosts
from nearfar.model.map_work import mark_binding, time_term
from nearfar.model.results import LADDER, Prediction, Term, modelled
from nearfar.model.structures import (
    Memory,
    OperationTime,
    Shape,
    Software,
    loads_of,
    operation_time,
)
from nearfar.records.shape import Positive, Shaped

StructureName = Literal[
    "list", "hash", "skip_list", "list_tx", "skip_list_tx", "map_atomic", "map_tx", "map_rp"
]
BaselineName = Literal["twin", "same_code"]
TITLES = {
    "twin": "its volatile twin in near memory, as malloc would have it",
    "same_code": "the same code in near memory, flushes, fences and logs included",
}
_LIMITS = [
    "one thread; stores wait for nothing but fences; bandwidth binds streams alone",
    "idle latencies of the device; 4 KiB pages",
]


class Reading(Shaped):
    """One reading of what "against DRAM" means."""

    baseline: BaselineName
    near_time_s: Positive = Field(description="an operation on that baseline")
    slowdown: Positive
    published_slowdown: float | None = Field(None, description="mean that the paper reports")


class StructurePrediction(Prediction):
    """One operation of a set of integers in far memory."""

    structure: StructureName
    size_entries: int
    update_share: float
    far: str
    host: str
    time_s: Positive = Field(description="an operation")
    slowdown: Positive = Field(description="against the volatile twin in near memory")
    readings: list[Reading] = Field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """A structure as it was watched, its software, and those of its twin."""

    structure: StructureName
    entries: int
    update_percent: int
    shape: Shape
    software: Software
    twin_shape: Shape
    twin_software: Software


def predict(
    case: Case, costs: HostCosts, near: Memory, far: Memory,
    published: float | None = None,
) -> StructurePrediction:  # fmt: skip
    """An operation in `far` beside both baselines in `near`."""
    there = _range(case.shape, case.software, costs, far)
    twin = operation_time(case.twin_shape, case.twin_software, costs, near)
    same = operation_time(case.shape, case.software, costs, near)
    readings = [
        _reading("twin", there, twin, published), _reading("same_code", there, same, published),
    ]  # fmt: skip
    found = there.found
    slowdown = readings[0].estimate("slowdown")
    return StructurePrediction(
        structure=case.structure, size_entries=case.entries,
        update_share=case.update_percent / 100, far=far.name, host=costs.name,
        calibration_level=1, calibration=f"1, {LADDER[1]}", readings=readings,
        terms=terms(found, case, far), limits=_LIMITS,
        **modelled({"time_s": (found.parts.total, found.low, found.high), "slowdown": slowdown},
                   samples=0, note="general form; interval: assumptions, ranges of figures"),
    )  # fmt: skip


@dataclass(frozen=True)
class _Range:
    """A time in far memory, and the same with nothing uncertain but the device."""

    found: OperationTime
    by_device: tuple[float, float]


def _range(shape: Shape, software: Software, costs: HostCosts, far: Memory) -> _Range:
    ends = [
        operation_time(shape, software, costs, far.at(end)).parts.total for end in ("low", "high")
    ]
    return _Range(operation_time(shape, software, costs, far), (min(ends), max(ends)))


def _reading(
    name: BaselineName, there: _Range, here: OperationTime, published: float | None
) -> Reading:
    """A ratio: what is uncertain of host and software is uncertain of both sides alike."""
    value = there.found.parts.total / here.parts.total
    ratios = [
        value, there.found.low / here.low, there.found.high / here.high,
        *(time / here.parts.total for time in there.by_device),
    ]  # fmt: skip
    return Reading(
        baseline=name, published_slowdown=published,
        **modelled({"near_time_s": (here.parts.total, here.low, here.high),
                    "slowdown": (value, min(ratios), max(ratios))}, samples=0),
    )  # fmt: skip


def terms(found: OperationTime, case: Case, far: Memory) -> list[Term]:
    """Shares of the time, then the counts they are made of."""
    p, watched = found.parts, case.shape.watched
    shares = [
        time_term("software", p.software, "an operation in cache"),
        time_term("streams", p.streams, "lines in turn, beyond software that hides them"),
        time_term("cache hits", p.cache_hits, "beyond the first level"),
        time_term("near misses", p.near_misses, "loads of volatile parts"),
        time_term("far misses", p.far_misses, f"loads from {far.name}"),
        time_term("page walks", p.walks, ""),
        time_term("fences" if far.sync is None else "msyncs", p.fences,
                  "beyond what runs on under them" if far.sync is None else "one a flush"),
        time_term("lines", p.lines, "flushed beyond one a fence"),
    ]  # fmt: skip
    levels = [v.levels[-1].load_misses for v in watched.variants]
    fars = [v.far_load_misses for v in watched.variants]
    plain = [
        Term(name="loads", value=loads_of(watched), unit="ratio", note="an operation"),
        Term(name="misses", value=sum(levels) / len(levels), unit="ratio",
             note=f"{min(levels):.3f} to {max(levels):.3f} over assumptions"),
        Term(name="far misses an operation", value=sum(fars) / len(fars), unit="ratio"),
        Term(name="walks", value=watched.walks, unit="ratio"),
        Term(name="fences p", value=watched.fences, unit="ratio"),
        Term(name="lines w", value=watched.lines, unit="ratio"),
        Term(name="flushes", value=watched.flushes, unit="ratio"),
        Term(name="operations under way", value=found.overlap, unit="ratio"),
    ]  # fmt: skip
    return mark_binding(shares) + plain
