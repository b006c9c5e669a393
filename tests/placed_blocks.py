"""A program that allocates blocks, and a plan with a promise that places them far."""

from __future__ import annotations

from nearfar.place.promise import PlanPromise, Promise, RulePromise

BLOCKS, BYTES = 200, 100_000
SCRIPT = f"held = [bytes([n]) * {BYTES} for n in range({BLOCKS})]"


def plan() -> str:
    """The plan, with a promise that it keeps."""
    reported: dict[str, object] = {"allocations": BLOCKS, "reads": 0, "writes": 0, "stall_share": 0}
    large = {**reported, "allocated_bytes": BLOCKS * BYTES, "peak_bytes": BLOCKS * BYTES}
    small = {**reported, "allocated_bytes": 1000, "peak_bytes": 1000}
    whole = PlanPromise(
        allocated_bytes=BLOCKS * BYTES + 1000,
        peak_bytes=BLOCKS * BYTES + 1000,
        near_bytes=1000,
        slowdown=1.0,
        slowdown_all_far=1.0,
    )
    rules = [
        RulePromise.model_validate({**large, "rule": 1, "tier": "far", "at": "blocks"}),
        RulePromise.model_validate({**small, "rule": 2, "tier": "near", "at": "the rest"}),
    ]
    promise = Promise(whole=whole, rules=rules)
    return "\n".join(["hmalloc-plan 1", *promise.lines(), "rule far size=64KiB..", "rule near"])
