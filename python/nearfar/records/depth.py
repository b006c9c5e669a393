"""The results of the probes in depth, one model a section of a record."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from nearfar.records.choices import AccessOrder
from nearfar.records.shape import Amount, Count, Finite, Positive, Shaped, Share, Size


class ChainPoint(Shaped):
    """Independent chases on one thread."""

    chains: Size
    latency_ns: Positive = Field(description="time over all loads of all chains")


class ParallelismResult(Shaped):
    """Section ``parallelism``: how many misses one thread has under way."""

    tier: str
    region_bytes: Size
    points: list[ChainPoint] = Field(min_length=1)
    parallelism: Positive = Field(description="latency of one chain over the least at any number")


class BlockPoint(Shaped):
    """Blocks in a random order, the lines of each in turn."""

    block_bytes: Size
    latency_ns: Positive = Field(description="a line")


class BlocksResult(Shaped):
    """Section ``blocks``: latency by block size on a region beyond every cache."""

    tier: str
    region_bytes: Size
    points: list[BlockPoint] = Field(min_length=1)


class Mixed(Shaped):
    """Base of what was measured under a mix of reads and writes."""

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
    bandwidth_bytes_per_s: Positive = Field(description="bytes asked for, without write-allocate")


class AccessResult(Shaped):
    """Section ``access``: bandwidth by mix, order and size; ``strides`` shows interleaving."""

    tier: str
    size_bytes: Size
    points: list[AccessPoint]
    strides: list[AccessPoint]
    interleave_bytes: Size | None = Field(
        None, description="the stride whose bandwidth falls out of line, if one does"
    )


class LoadedTier(Shaped):
    """A memory while the program runs."""

    name: str
    read_share: Share
    bandwidth_bytes_per_s: Amount = Field(description="of the program and the background")
    background_bytes_per_s: Amount
    idle_latency_ns: Positive
    latency_ns: Positive = Field(description="at this bandwidth")
    utilization: Amount = Field(description="fraction of the highest bandwidth of the curve")
    at_open_end: bool = Field(description="used to the end of a curve that is not saturated")


class PersistPoint(Shaped):
    """Blocks stored, flushed, and one fence."""

    how: str = Field(description="ntstore, clwb, clflushopt, clflush, movdir64b or msync")
    block_bytes: Size
    blocks_per_fence: Size
    fence_ns: Positive = Field(description="the fence with all the blocks under it")


class PersistCost(Shaped):
    """A straight line through the points of 64-byte blocks: a fence, and each line under it."""

    how: str
    per_fence_ns: Finite
    per_line_ns: Finite


class OverwriteResult(Shaped):
    """One block stored over and over, each store timed by itself."""

    how: str
    block_bytes: Size
    latency_ns: Amount = Field(description="median")
    stall_ns: Amount = Field(description="median of stores over 20 times the median; 0: none")
    writes_between: Amount = Field(description="stores from one stall to the next; 0: under two")
    stalls: Count


class PersistenceResult(Shaped):
    """Section ``persistence``."""

    tier: str
    points: list[PersistPoint] = Field(min_length=1)
    costs: list[PersistCost]
    overwrite: OverwriteResult | None = None


class LoadedPoint(Mixed):
    """One chaser next to paced traffic."""

    asked = frozenset({"offered_bytes_per_s"})

    offered_bytes_per_s: Amount | None = Field(None, description="null: as much as it can")
    bandwidth_bytes_per_s: Positive = Field(description="achieved, traffic and chaser together")
    latency_ns: Positive


class LoadedResult(Shaped):
    """Section ``loaded``: the bandwidth-latency curve."""

    tier: str
    chaser_cpu: Count
    traffic_cpus: list[int]
    points: list[LoadedPoint] = Field(min_length=1)


class TailPoint(Shaped):
    """A percentile of single loads."""

    asked = frozenset({"share"})

    share: Share
    latency_ns: Amount


class TailsResult(Shaped):
    """Section ``tails``: loads timed one by one, the timer's own cost subtracted."""

    tier: str
    region_bytes: Size
    timer_ns: Amount = Field(description="what was subtracted")
    points: list[TailPoint] = Field(min_length=1)
