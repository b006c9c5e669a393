"""The results of each measuring verb, one model a section of a record."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.shape import Shaped


class LatencyPoint(Shaped):
    """Dependent loads in a random order over a region."""

    region_bytes: int
    latency_ns: float


class LatencyCurve(Shaped):
    """Latency by region size on one tier with one page size."""

    tier: str
    pages: str = Field(description="4k, thp, 2m, 1g, or system where the tier did not ask")
    block_bytes: int
    cpu: int
    points: list[LatencyPoint]


class Knee(Shaped):
    """The largest region still on the lower plateau of a latency curve."""

    region_bytes: int
    low: int
    high: int


class CurveResult(Shaped):
    """What a latency curve of others betrays (``nearfar probe --from``)."""

    source: str = Field(description="the file of the curve")
    block_bytes: int | None = Field(None, description="of the knees' curve: the smallest block")
    knees: list[Knee]
    access_unit_bytes: int | None = Field(
        None, description="block from which on a store costs no more by being small"
    )


class LatencyResult(Shaped):
    """Section ``latency``: curves of one or more tiers and page sizes."""

    curves: list[LatencyCurve]
    effective_last_cache_bytes: int = Field(
        description="the probe's own knee, or the reported size"
    )
    effective_last_cache_source: Literal["knee", "reported", "assumed"]
    reported_last_cache_bytes: int | None = None
    knees: list[Knee] = Field(default_factory=list, description="of the first curve, ascending")


class BandwidthPoint(Shaped):
    """One kernel on one tier with a number of threads."""

    tier: str
    kernel: str
    threads: int
    oversubscribed: bool = False
    bandwidth_bytes_per_s: float


class BandwidthResult(Shaped):
    """Section ``bandwidth``: read, write, ntwrite and copy by threads."""

    size_bytes: int = Field(description="per array")
    in_cache: bool = Field(description="the working set is under 4 effective last caches")
    points: list[BandwidthPoint]


class StreamKernel(Shaped):
    """One STREAM kernel; bytes counted as STREAM counts them, without write-allocate."""

    best_bandwidth_bytes_per_s: float
    median_bandwidth_bytes_per_s: float
    write_allocate: bool = Field(description="stored lines are first read: real traffic is higher")


class StreamRun(Shaped):
    """All four kernels on one placement with one number of threads."""

    tier_a: str
    tier_b: str
    tier_c: str
    cpus: list[int]
    oversubscribed: bool = False
    size_bytes: int = Field(description="per array")
    in_cache: bool
    worst_error: float = Field(description="largest relative difference from the closed form")
    copy_: StreamKernel = Field(alias="copy")
    scale: StreamKernel
    add: StreamKernel
    triad: StreamKernel

    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)


class StreamResult(StreamRun):
    """Section ``stream``: the run with the most threads at the top, the scaling sweep below."""

    sweep: list[StreamRun] = Field(default_factory=list)


class MappingFacts(BaseModel):
    """What a mapping of the file is."""

    model_config = ConfigDict(extra="forbid")

    descriptor: int
    first_address: int
    last_address: int
    page_bytes: int
    huge_bytes: int
    dax: bool
    map_sync: bool


class MappedPoint(Shaped):
    """One way of moving the file's blocks."""

    method: Literal["mapped", "buffered", "direct", "uring"]
    direction: Literal["read", "write"]
    pattern: Literal["sequential", "random"]
    warmth: Literal["cold", "warm", "resident"]
    block_bytes: int
    queue_depth: int
    bandwidth_bytes_per_s: float
    faults_per_gib: float | None = None


class MappedRatio(Shaped):
    """Mapped over a classic call, same direction, pattern and warmth, from pairs."""

    against: Literal["buffered", "direct", "uring"]
    direction: Literal["read", "write"]
    pattern: Literal["sequential", "random"]
    warmth: Literal["cold", "warm"]
    ratio: float


class MappedResult(Shaped):
    """Section ``mapped``: a mapped file against the classic calls."""

    path: str
    size_bytes: int
    file_system: str
    mapping: MappingFacts
    points: list[MappedPoint]
    ratios: list[MappedRatio]
    fault_time_ns: float | None = Field(
        None, description="a page fault of a warm random mapped read, from resident against fresh"
    )
