"""STREAM over threads and tiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nearfar.measure import stream
from nearfar.measure.session import Effort
from nearfar.workflows.plans import array_plan
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.records.choices import Accessor
    from nearfar.records.results import StreamResult
    from nearfar.workflows.options import Options


def measure(
    tiers: tuple[str, str, str],
    options: Options,
    *,
    threads: Sequence[int] = (),
    size: str | None = None,
    accessor: Accessor = "mapped",
    reference_rules: bool = False,
) -> Measured[StreamResult]:
    """Measure copy, scale, add and triad; ``tiers`` are those of the arrays a, b and c."""
    arguments = {
        "tiers": tiers,
        "time_s": options.budget_s(20.0),
        "reference_rules": reference_rules,
        "accessor": accessor,
    }
    with recorded("bench stream", arguments, options, "stream") as recording:
        plan, last_cache = array_plan(
            recording, stream.KERNELS, tiers, options, threads=threads, size=size
        )
        plan = replace(plan, accessor=accessor)
        stream.check(plan)
        effort = options.effort(20.0)
        if reference_rules:
            plan = replace(plan, rounds=stream.REFERENCE_ROUNDS)
            effort = Effort(effort.budget_s, 1)
        result, skipped = stream.measure(recording.session, plan, effort, last_cache)
        recording.keep("stream", result, skipped)
    return recording.measured(result)
