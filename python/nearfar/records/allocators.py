"""Results of the malloc tests, by allocator."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.choices import MallocTest
from nearfar.records.figures import FigureModel


class AllocatorFacts(BaseModel):
    """A tested allocator, and the file from which its code was loaded."""

    model_config = ConfigDict(extra="forbid")

    allocator: str
    library: str


class MallocRow(FigureModel):
    """One test with one allocator and a number of threads.

    Ratios are medians over repeats in which both allocators ran one after the other. The rows of
    glibc have no ratio.
    """

    test: MallocTest
    allocator: str
    threads: int
    oversubscribed: bool = Field(description="more threads than processors")
    count: int = Field(description="blocks of one round, over all threads")
    pairs: int = Field(description="blocks allocated and freed while timed, over all threads")
    cpu_time_s: float = Field(description="of all threads, the allocator's own included")
    wall_time_s: float = Field(description="from the first thread's start to the last one's end")
    ratio_to_glibc: float | None = Field(None, description="of CPU times")
    wall_ratio_to_glibc: float | None = None
    peak_memory_bytes: float = Field(description="resident, beyond what was there before the test")
    settled_memory_bytes: float = Field(description="the same, a second after the last free")
    peak_ratio_to_glibc: float | None = None
    settled_share: float = Field(description="settled over peak memory")
    pair_time_ns: float | None = Field(
        None, description="test warm: wall time of one free and one malloc, of one thread"
    )


class MallocResult(MallocRow):
    """Section ``malloc``: the first row; ``rows`` has all rows."""

    rows: list[MallocRow] = Field(default_factory=list)
    allocators: list[AllocatorFacts] = Field(default_factory=list)
