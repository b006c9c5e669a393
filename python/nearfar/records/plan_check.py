"""A run compared with the promise of its plan."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.choices import RuleMemory
from nearfar.records.figures import Count, Share


class RuleCheck(BaseModel):
    """One rule: promised and counted. ``broken`` gives the reason; empty if the rule was kept.

    Of a program that was placed from outside, bytes are those in memory at the last look.
    """

    model_config = ConfigDict(extra="forbid")

    rule: Count
    tier: str
    memory: RuleMemory = "heap"
    at: str
    weight: Share = Field(
        default=0.0, description="fraction of all memory, promised or in this run: the larger one"
    )
    promised_bytes: Count
    allocations: Count
    allocated_bytes: Count
    peak_bytes: Count
    elsewhere_bytes: Count
    pages: Count = Field(description="that the kernel was asked about, and that were in memory")
    misplaced_pages: Count = Field(description="of these: on no node of the tier")
    promised_reads: Count = 0
    promised_writes: Count = 0
    reads: Count | None = Field(
        default=None, description="lines, counted in an additional traced run"
    )
    writes: Count | None = None
    broken: str = ""


class Check(BaseModel):
    """A promise and the run checked against it."""

    model_config = ConfigDict(extra="forbid")

    kept: bool
    kept_share: Share = Field(
        default=0.0,
        description="of heap, mappings and globals together: at rules that are kept",
    )
    matched_share: Share | None = Field(
        default=None,
        description="of the allocated bytes: by a rule with a site; absent if the program was "
        "placed from outside",
    )
    matched_mapping_share: Share | None = Field(
        default=None, description="the same of mapped bytes; absent if the plan promises none"
    )
    matched_traffic_share: Share | None = Field(
        default=None, description="of the heap's lines; absent where traffic was not counted"
    )
    near_traffic_share: Share | None = Field(
        default=None, description="of the lines at known sites: at those that are near"
    )
    promised_near_traffic_share: Share | None = None
    unchecked_bytes: Count = Field(
        default=0,
        description="promised, of mappings and globals whose tier is not memory of nodes of this "
        "machine",
    )
    broken: list[str] = Field(default_factory=list, description="what concerns no single rule")
    rules: list[RuleCheck] = Field(default_factory=list)
