"""Counters of a measured region: totals of all its operations."""

from __future__ import annotations

from pydantic import Field

from nearfar.records.choices import CounterSource
from nearfar.records.figures import Amount, FigureModel

#: Fields of a record, in display order.
FIELDS = (
    "instructions",
    "cycles",
    "llc_loads",
    "llc_load_misses",
    "llc_stores",
    "llc_store_misses",
    "l3_stall_cycles",
    "page_faults",
    "context_switches",
    "task_clock_ns",
)


class RegionCounters(FigureModel):
    """Totals over the operations of one run, and the reasons why other events were not counted."""

    source: CounterSource
    instructions: Amount | None = None
    cycles: Amount | None = None
    llc_loads: Amount | None = Field(
        default=None, description="that reached the last level of caches"
    )
    llc_load_misses: Amount | None = None
    llc_stores: Amount | None = None
    llc_store_misses: Amount | None = None
    l3_stall_cycles: Amount | None = Field(default=None, description="while a load missed the L3")
    page_faults: Amount | None = None
    context_switches: Amount | None = None
    task_clock_ns: Amount | None = None
    missing: dict[str, str] = Field(default_factory=dict, description="why a field is absent")
