"""The results of benchmarks on structures in persistent pools."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict, Field

from nearfar.records.choices import IntsetMedium, MapOperation, MapType
from nearfar.records.counters import RegionCounters
from nearfar.records.figures import Amount, FigureModel, Positive, Size

#: Maps of ours; the others are after PMDK's.
OWN_MAPS: tuple[MapType, ...] = ("map", "dram")


class MapPoint(FigureModel):
    """One operation on a map of one size. Times are those that one thread takes."""

    operations: Size
    value_bytes: Size
    ops_per_s: Positive = Field(description="of all threads, in a loop that does nothing else")
    latency_ns: Positive = Field(description="threads over operations per second")
    time_s: Positive = Field(description="of all operations")
    load_time_s: Positive | None = Field(None, description="of loading, which is not measured")
    # From here to ``worst_cpu_ns``: operations timed one by one.
    mean_latency_ns: Positive = Field(description="of operations timed one by one")
    least_latency_ns: Amount
    p50_latency_ns: Amount
    p90_latency_ns: Amount
    p99_latency_ns: Amount
    p999_latency_ns: Amount
    p9999_latency_ns: Amount
    largest_latency_ns: Amount = Field(description="wall time: interruptions are in it")
    worst_cpu_ns: Amount = Field(
        description="upper bound of the processor time of the worst single operation"
    )
    dependent_latency_ns: Positive | None = Field(
        None, description="gets only: each key depends on the value of the get before"
    )
    batched_latency_ns: Positive | None = Field(
        None, description="gets of nearfar's map only: a key of many that are looked up together"
    )
    fences_per_op: Amount
    lines_per_op: Amount
    flush_fence_ns: Positive | None = Field(
        None, description="one store, clwb and sfence on a random line, in the same epochs"
    )
    counters: RegionCounters | None = Field(None, description="of the operations alone")


class PmdkCost(FigureModel):
    """One way of libpmemobj to change a pool, in the same process and epochs."""

    name: str
    latency_ns: Positive
    fences_per_op: Amount
    lines_per_op: Amount
    ratio: Positive = Field(description="its time over the map's operation, by epochs")


class MapResult(MapPoint):
    """Section ``map``: the last point of the sweep; ``sweep`` has all points."""

    type: MapType
    operation: MapOperation
    tier: str
    cpus: list[int]
    oversubscribed: bool = Field(description="more threads than processors")
    alloc: bool = Field(description="values are objects that are neither written nor read")
    pool: str | None = Field(None, description="file that --keep left")
    sweep: list[MapPoint] = Field(default_factory=list)
    pmdk: list[PmdkCost] = Field(default_factory=list)


#: Any that the native core has: list, hash, skip_list, and what was added.
IntsetStructure = str


class IntsetSeries(FigureModel):
    """The throughput of one medium: the mean of all runs with its bootstrap interval."""

    medium: IntsetMedium
    ops_per_s: Positive
    fences_per_op: Amount
    lines_per_op: Amount
    changed_share: Amount = Field(description="operations that inserted or removed something")


class IntsetResult(FigureModel):
    """A set of integers under look-ups and updates. The media in ``series`` ran alternately."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
    requested: ClassVar[frozenset[str]] = frozenset({"update_share", "run_time_s"})

    structure: IntsetStructure
    entries: Size = Field(description="at first; keys are drawn from twice as many")
    update_share: Amount = Field(description="half of them insertions, half removals")
    tier: str
    cpu: int
    ops_per_s: Positive
    slowdown: Positive | None = Field(None, description="against the volatile counterpart, by runs")
    unflushed_slowdown: Positive | None = Field(
        None, description="against the same code without flushes and fences, by runs"
    )
    pmdk_ratio: Positive | None = Field(
        None, description="throughput over a correct version on libpmemobj, by runs"
    )
    run_time_s: Positive = Field(description="asked for, of one run of one medium")
    series: list[IntsetSeries]
    others: list[IntsetResult] = Field(
        default_factory=list,
        # Published JSON keys keep their names (docs/reference/contract.md).
        validation_alias="beside",
        serialization_alias="beside",
        description="other structures of the same study",
    )
