"""The results of allocators at the malloc tests."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.choices import MallocTest
from nearfar.records.shape import Shaped


class AllocatorFacts(BaseModel):
    """An allocator that took part, and the file that its code was loaded from."""

    model_config = ConfigDict(extra="forbid")

    allocator: str
    library: str


class MallocRow(Shaped):
    """One test with one allocator on so many threads. Ratios are medians over repeats in which
    both allocators ran one after the other; glibc itself has none."""

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
    """Section ``malloc``: the first row at the top, all rows below."""

    rows: list[MallocRow] = Field(default_factory=list)
    allocators: list[AllocatorFacts] = Field(default_factory=list)
