"""Statistics of a run with libhmalloc: the result of ``nearfar run``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.choices import RuleMemory
from nearfar.records.placement import PlacementResult
from nearfar.records.plan_check import Check


class ThreadStatistics(BaseModel):
    """A thread that was alive at the end; counts by tier."""

    model_config = ConfigDict(extra="forbid")

    thread: int
    name: str = ""
    tiers: dict[str, dict[str, int]] = Field(default_factory=dict)


class RuleStatistics(BaseModel):
    """Memory that a rule of the plan placed; ``nodeN`` counts sampled pages on NUMA node N."""

    model_config = ConfigDict(extra="forbid")

    tier: str
    memory: RuleMemory = "heap"
    counts: dict[str, int] = Field(default_factory=dict)


class ProcessStatistics(BaseModel):
    """Counts by tier in the format of ``hm_tier_stats``, including ended threads."""

    model_config = ConfigDict(extra="forbid")

    process: int
    tiers: dict[str, dict[str, int]] = Field(default_factory=dict)
    threads: list[ThreadStatistics] = Field(default_factory=list)
    rules: dict[int, RuleStatistics] = Field(
        default_factory=dict, description="by number, from 1; --check"
    )


class RunStatistics(BaseModel):
    """The output of ``nearfar run --json``. Bytes are those of size classes; all are counts."""

    model_config = ConfigDict(extra="forbid")

    program: list[str]
    exit_code: int
    plan: str | None = None
    tiers: dict[str, str] = Field(default_factory=dict, description="as --tier gave them")
    processes: list[ProcessStatistics] = Field(
        default_factory=list,
        description="that ended by exit() or a return of main, the program itself first",
    )
    check: Check | None = Field(default=None, description="what the plan promised; --check")
    placement: PlacementResult | None = Field(
        default=None, description="pages moved from outside: no library can be preloaded"
    )
