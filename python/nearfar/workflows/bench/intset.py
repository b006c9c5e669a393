"""A set of integers in a pool, compared with its volatile counterpart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nearfar.measure import intset, pool_tiers
from nearfar.workflows.plans import chosen_cpus
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.records.persistent_structures import IntsetResult
    from nearfar.workflows.options import Options


def measure(
    structure: str, options: Options, *, entries: int = 1024, update: int = 50, tier: str = "shm:"
) -> Measured[IntsetResult]:
    """Measure look-ups and updates; ``update``: percentage of the operations."""
    effort = replace(options.effort(10.0), epochs=options.runs or intset.RUNS)
    arguments = {
        "structure": structure,
        "entries": entries,
        "update_percent": update,
        "tier": tier,
        "time_s": effort.budget_s,
    }
    with recorded("bench intset", arguments, options, "intset") as recording:
        pool_tiers.require_pools()
        cpu = chosen_cpus(recording.machine, options.cpus)[0]
        run_s = effort.budget_s / (effort.epochs or intset.RUNS)
        plan = intset.plan_for(structure, entries, update, tier, cpu, run_s)
        result = intset.measure(recording.session, plan, effort)
        recording.keep("intset", result)
    return recording.measured(result)
