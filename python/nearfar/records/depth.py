"""Results that describe one tier in depth: one model for each section of a record."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from nearfar.records.choices import AccessOrder
from nearfar.records.figures import Amount, Count, FigureModel, Finite, Positive, Share, Size


class ChainPoint(FigureModel):
    """A number of independent pointer chases (chains) on one thread."""

    chains: Size
    latency_ns: Positive = Field(description="time divided by the number of loads of all chains")


class ParallelismResult(FigureModel):
    """Section ``parallelism``: outstanding misses of one thread."""

    tier: str
    region_bytes: Size
    points: list[ChainPoint] = Field(min_length=1)
    parallelism: Positive = Field(description="latency of one chain over the lowest latency")


class BlockPoint(FigureModel):
    """Blocks visited in random order, the lines of each block in address order."""

    block_bytes: Size
    latency_ns: Positive = Field(description="per cache line")


class BlocksResult(FigureModel):
    """Section ``blocks``: latency by block size on a region beyond every cache."""

    tier: str
    region_bytes: Size
    points: list[BlockPoint] = Field(min_length=1)


class Mixed(FigureModel):
    """Base of figures that depend on a mix of reads and writes."""

    reads: Count
    writes: Count

    @model_validator(mode="after")
    def _mixes_something(self) -> Self:
        if self.reads + self.writes == 0:
            raise ValueError("a mix of no reads and no writes")
        return self


class AccessPoint(Mixed):
    """Independent accesses of one size, order and mix."""

    order: AccessOrder
    block_bytes: Size
    stride_bytes: Count = Field(description="0 unless strided")
    nontemporal: bool
    threads: Size
    bandwidth_bytes_per_s: Positive = Field(description="of accessed bytes, without write-allocate")


class AccessResult(FigureModel):
    """Section ``access``: bandwidth by mix, order and size of accesses.

    ``strides`` has the bandwidths of strided accesses, from which interleaving is derived.
    """

    tier: str
    size_bytes: Size
    points: list[AccessPoint]
    strides: list[AccessPoint]
    interleave_bytes: Size | None = Field(
        None, description="stride whose bandwidth differs from that of its neighbors, if any"
    )


class LoadedTier(FigureModel):
    """A memory under the traffic of a program."""

    requested: ClassVar[frozenset[str]] = frozenset({"background_bytes_per_s"})
    undirected: ClassVar[frozenset[str]] = frozenset({"bandwidth_bytes_per_s"})

    name: str
    read_share: Share
    bandwidth_bytes_per_s: Amount = Field(description="of the program and the background")
    background_bytes_per_s: Amount
    idle_latency_ns: Positive
    latency_ns: Positive = Field(description="at this bandwidth")
    utilization: Amount = Field(description="fraction of the highest bandwidth of the curve")
    at_open_end: bool = Field(description="at the end of a curve that ends before saturation")


class PersistPoint(FigureModel):
    """A number of blocks that are stored and flushed, followed by one fence."""

    how: str = Field(description="ntstore, clwb, clflushopt, clflush, movdir64b or msync")
    block_bytes: Size
    blocks_per_fence: Size
    fence_ns: Positive = Field(description="time of all the blocks and the fence")


class PersistCost(FigureModel):
    """A straight line fitted to the points of 64-byte blocks: the cost of a fence and of a line."""

    how: str
    per_fence_ns: Finite
    per_line_ns: Finite


class OverwriteResult(FigureModel):
    """One block that is stored repeatedly, each store timed."""

    how: str
    block_bytes: Size
    latency_ns: Amount = Field(description="median")
    stall_ns: Amount = Field(description="median of stores over 20 times the median; 0: none")
    writes_between: Amount = Field(description="stores between two stalls; 0: fewer than two")
    stalls: Count


class PersistenceResult(FigureModel):
    """Section ``persistence``: costs of flushes and fences."""

    tier: str
    points: list[PersistPoint] = Field(min_length=1)
    costs: list[PersistCost]
    overwrite: OverwriteResult | None = None


class LoadedPoint(Mixed):
    """A pointer chase while other threads cause paced traffic."""

    requested = frozenset({"offered_bytes_per_s"})

    offered_bytes_per_s: Amount | None = Field(None, description="null: not paced")
    bandwidth_bytes_per_s: Positive = Field(description="achieved, by traffic and chase together")
    latency_ns: Positive


class LoadedResult(FigureModel):
    """Section ``loaded``: the bandwidth-latency curve."""

    tier: str
    chaser_cpu: Count
    traffic_cpus: list[int]
    points: list[LoadedPoint] = Field(min_length=1)


class TailPoint(FigureModel):
    """A percentile of the latency of single loads."""

    requested = frozenset({"share"})

    share: Share
    latency_ns: Amount


class TailsResult(FigureModel):
    """Section ``tails``: loads timed one by one; the overhead of the timer is subtracted."""

    tier: str
    region_bytes: Size
    timer_ns: Amount = Field(description="overhead of the timer, already subtracted")
    points: list[TailPoint] = Field(min_length=1)
