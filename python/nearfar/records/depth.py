"""The results of the probes in depth, one model a section of a record."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nearfar.records.shape import Shaped


class ChainPoint(Shaped):
    """Independent chases side by side on one thread."""

    chains: int
    latency_ns: float = Field(description="time over all loads of all chains")


class ParallelismResult(Shaped):
    """Section ``parallelism``: how many misses one thread has under way."""

    tier: str
    region_bytes: int
    points: list[ChainPoint]
    parallelism: float = Field(description="latency of one chain over the least at any number")


class BlockPoint(Shaped):
    """Blocks in a random order, the lines of each in turn."""

    block_bytes: int
    latency_ns: float = Field(description="a line")


class BlocksResult(Shaped):
    """Section ``blocks``: latency by block size on a region beyond every cache."""

    tier: str
    region_bytes: int
    points: list[BlockPoint]


class AccessPoint(Shaped):
    """Independent accesses of one size, order and mix."""

    order: Literal["sequential", "strided", "random"]
    block_bytes: int
    stride_bytes: int = Field(description="0 unless strided")
    reads: int
    writes: int
    nontemporal: bool
    threads: int
    bandwidth_bytes_per_s: float = Field(description="bytes asked for, without write-allocate")


class AccessResult(Shaped):
    """Section ``access``: bandwidth by mix, order and size; ``strides`` tells of interleaving."""

    tier: str
    size_bytes: int
    points: list[AccessPoint]
    strides: list[AccessPoint]
    interleave_bytes: int | None = Field(
        None, description="the stride whose bandwidth falls out of line, if one does"
    )


class PersistPoint(Shaped):
    """Blocks stored, flushed, and one fence."""

    how: str = Field(description="ntstore, clwb, clflushopt, clflush, movdir64b or msync")
    block_bytes: int
    blocks_per_fence: int
    fence_ns: float = Field(description="the fence with all the blocks under it")


class PersistCost(Shaped):
    """A straight line through the points of 64-byte blocks: a fence, and each line under it."""

    how: str
    per_fence_ns: float
    per_line_ns: float


class OverwriteResult(Shaped):
    """One block stored over and over, each store timed by itself."""

    how: str
    block_bytes: int
    latency_ns: float = Field(description="median")
    stall_ns: float = Field(description="median of stores over 20 times the median; 0: none")
    writes_between: float = Field(description="stores from one stall to the next; 0: under two")
    stalls: int


class PersistenceResult(Shaped):
    """Section ``persistence``."""

    tier: str
    points: list[PersistPoint]
    costs: list[PersistCost]
    overwrite: OverwriteResult | None = None


class LoadedPoint(Shaped):
    """One chaser beside paced traffic."""

    asked = frozenset({"offered_bytes_per_s"})

    reads: int
    writes: int
    offered_bytes_per_s: float | None = Field(None, description="null: as much as it can")
    bandwidth_bytes_per_s: float = Field(description="achieved, traffic and chaser together")
    latency_ns: float


class LoadedResult(Shaped):
    """Section ``loaded``: the bandwidth-latency curve."""

    tier: str
    chaser_cpu: int
    traffic_cpus: list[int]
    points: list[LoadedPoint]


class TailPoint(Shaped):
    """A percentile of single loads."""

    asked = frozenset({"share"})

    share: float
    latency_ns: float


class TailsResult(Shaped):
    """Section ``tails``: loads timed one by one, the timer's own cost subtracted."""

    tier: str
    region_bytes: int
    timer_ns: float = Field(description="what was subtracted")
    points: list[TailPoint]
