"""A persistent hash map: insertions, look-ups or removals, and their counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.measure import maps
from nearfar.workflows import counting
from nearfar.workflows.plans import map_plan
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.records.choices import CounterMode, MapOperation, MapType
    from nearfar.records.persistent_structures import MapResult
    from nearfar.workflows.options import Options


@dataclass(frozen=True)
class Work:
    """Operations on one kind of map; ``compare``: also libpmemobj's primitives."""

    op: MapOperation = "insert"
    type: MapType = "map"
    operations: Sequence[int] = (1_000_000,)
    value_bytes: Sequence[int] = (8,)
    tier: str | None = None
    threads: int = 1
    alloc: bool = False
    keep: bool = False
    compare: bool = False

    @property
    def tier_name(self) -> str:
        """The tier of the map: the given one, or the default of its type."""
        return self.tier or ("dram" if self.type == "dram" else "shm:")


def measure(work: Work, options: Options, *, counters: CounterMode = "off") -> Measured[MapResult]:
    """Measure, and write the table of the counters into the record."""
    arguments = {
        "op": work.op,
        "type": work.type,
        "operations": list(work.operations),
        "value_bytes": list(work.value_bytes),
        "tier": work.tier_name,
        "threads": work.threads,
        "alloc": work.alloc,
        "compare": work.compare,
        "counters": counters,
    }
    with recorded("bench map", arguments, options, "map") as recording:
        plan = counting.with_events(map_plan(recording.machine, work, options), counters)
        result, skipped = maps.measure(recording.session, plan, options.effort(30.0))
        counting.fill(result, counters, recording.machine)
        if work.keep:
            result.pool = maps.keep(plan)
        recording.keep("map", result, skipped)
    counting.write_tables(result, recording.directory.path)
    return recording.measured(result)
