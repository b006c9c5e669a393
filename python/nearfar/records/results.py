"""Results of measurements: one model for each section of a record."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.choices import (
    Accessor,
    OtherMethod,
    RatioWarmth,
    TransferDirection,
    TransferMethod,
    TransferPattern,
    Warmth,
)
from nearfar.records.figures import Amount, Count, FigureModel, Finite, Positive, Size


class LatencyPoint(FigureModel):
    """Dependent loads in a random order over a region."""

    region_bytes: Size
    latency_ns: Positive


class LatencyCurve(FigureModel):
    """Latency by region size on one tier with one page size."""

    tier: str
    pages: str = Field(description="4k, thp, 2m, 1g; system if the tier sets no page size")
    block_bytes: Size
    cpu: Count
    points: list[LatencyPoint] = Field(min_length=1)


class Knee(FigureModel):
    """The largest region before the latency rises: the size of a cache, or the reach of a TLB."""

    region_bytes: Size
    low: Size = Field(description="lower end of the interval of region_bytes")
    high: Size = Field(description="upper end of the interval of region_bytes")


class CurveResult(FigureModel):
    """Result of ``nearfar probe --from`` for a published latency curve."""

    source: str = Field(description="the file of the curve")
    block_bytes: Size | None = Field(None, description="block size of the curve with the knees")
    knees: list[Knee]
    access_unit_bytes: Size | None = Field(
        None, description="smallest block size at which a store has no extra cost"
    )


class LatencyResult(FigureModel):
    """Section ``latency``: curves of one or more tiers and page sizes."""

    curves: list[LatencyCurve] = Field(min_length=1)
    effective_last_cache_bytes: Size = Field(
        description="size of a knee; without a knee, as reported; without a report, assumed"
    )
    effective_last_cache_source: Literal["knee", "reported", "assumed"]
    reported_last_cache_bytes: Size | None = None
    knees: list[Knee] = Field(default_factory=list, description="of the first curve, ascending")


class BandwidthPoint(FigureModel):
    """One kernel on one tier with a number of threads."""

    tier: str
    kernel: str
    threads: Size
    oversubscribed: bool = False
    pages: str | None = Field(None, description="4k, thp, 2m, 1g; system: not known")
    bandwidth_bytes_per_s: Positive


class BandwidthResult(FigureModel):
    """Section ``bandwidth``: read, write, ntwrite and copy by number of threads."""

    size_bytes: Size = Field(description="per array")
    in_cache: bool = Field(description="the working set is under 4 effective last caches")
    points: list[BandwidthPoint] = Field(min_length=1)


class StreamKernel(FigureModel):
    """One STREAM kernel. Bytes are counted as in STREAM, without write-allocate traffic."""

    best_bandwidth_bytes_per_s: Positive
    median_bandwidth_bytes_per_s: Positive
    write_allocate: bool = Field(
        description="stores read their lines first: more traffic than counted"
    )


class StreamRun(FigureModel):
    """All four kernels on one placement with one number of threads."""

    tier_a: str
    tier_b: str
    tier_c: str
    accessor: Accessor = "mapped"
    cpus: list[int]
    oversubscribed: bool = False
    size_bytes: Size = Field(description="per array")
    in_cache: bool
    worst_error: Amount = Field(description="largest relative difference from the closed form")
    copy_: StreamKernel = Field(alias="copy")
    scale: StreamKernel
    add: StreamKernel
    triad: StreamKernel

    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)


class StreamResult(StreamRun):
    """Section ``stream``: the run with the most threads; ``sweep`` has the runs with fewer."""

    sweep: list[StreamRun] = Field(default_factory=list)


class MappingFacts(BaseModel):
    """Properties of a mapping of the file."""

    model_config = ConfigDict(extra="forbid")

    descriptor: Count
    first_address: Count
    last_address: Count
    page_bytes: Size
    huge_bytes: Count
    dax: bool
    map_sync: bool
    read_ahead_bytes: Count | None = Field(
        None,
        description="most that the kernel reads for a page fault; absent if the file is in memory",
    )


class MappedPoint(FigureModel):
    """One way of reading or writing the file."""

    method: TransferMethod
    direction: TransferDirection
    pattern: TransferPattern
    warmth: Warmth
    block_bytes: Size
    queue_depth: Count
    bandwidth_bytes_per_s: Positive
    faults_per_gib: Amount | None = None


class MappedRatio(FigureModel):
    """Bandwidth by mmap over that by a system call, under equal conditions, from paired repeats."""

    against: OtherMethod
    direction: TransferDirection
    pattern: TransferPattern
    warmth: RatioWarmth
    ratio: Positive


class MappedResult(FigureModel):
    """Section ``mapped``: access to a file by mmap and by system calls."""

    path: str
    size_bytes: Size
    file_system: str
    mapping: MappingFacts
    points: list[MappedPoint] = Field(min_length=1)
    ratios: list[MappedRatio]
    fault_time_ns: Finite | None = Field(
        None, description="of a page fault, from warm random reads by mmap with and without faults"
    )
