"""A run under a plan, held against what the plan promised.

What is compared: where the blocks of each rule went, where the kernel has put their pages, how much
was allocated at each site, and how much of the heap the plan knew. How often memory was accessed
under the plan is not counted: that takes hardware counters, or another trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from nearfar.place.promise import Promise, RulePromise
from nearfar.records.shape import Count, Share

if TYPE_CHECKING:
    from nearfar.place.accounts import Process

#: Shares beyond which a promise is broken: of bytes or pages elsewhere, of bytes without a rule.
ELSEWHERE, UNMATCHED = 0.01, 0.05
#: A site's share of the heap's bytes may change by this factor with another input, where it was
#: promised at least ``_COUNTS``.
_FACTOR, _COUNTS = 2.0, 0.05


class RuleCheck(BaseModel):
    """One rule: promised, and counted. ``broken`` says why in words; empty where it was kept."""

    model_config = ConfigDict(extra="forbid")

    rule: Count
    tier: str
    at: str
    promised_bytes: Count
    allocations: Count
    allocated_bytes: Count
    peak_bytes: Count
    elsewhere_bytes: Count
    pages: Count = Field(description="that the kernel was asked about, and that were in memory")
    misplaced_pages: Count = Field(description="of these: on no node of the tier")
    broken: str = ""


class Check(BaseModel):
    """A promise and a run."""

    model_config = ConfigDict(extra="forbid")

    kept: bool
    matched_share: Share = Field(description="of the allocated bytes: by a rule with a site")
    broken: list[str] = Field(default_factory=list, description="what concerns no single rule")
    rules: list[RuleCheck] = Field(default_factory=list)


def hold(promise: Promise, processes: Sequence[Process]) -> Check:
    """Hold what libhmalloc counted in all processes of a run against a promise."""
    counted: dict[int, dict[str, int]] = {}
    nodes: dict[str, int] = {}
    for process in processes:
        nodes |= {name: tier.get("nodes", 0) for name, tier in process.tiers.items()}
        for number, rule in process.rules.items():
            sums = counted.setdefault(number, {})
            for key, value in rule.counts.items():
                sums[key] = sums.get(key, 0) + value
    total = sum(_asked(counts) for counts in counted.values())
    rules = [
        _rule(told, counted.get(told.rule, {}), nodes.get(told.tier, 0), promise, total)
        for told in promise.rules
    ]
    known = sum(_asked(counted.get(told.rule, {})) for told in promise.rules)
    matched = known / total if total else 0.0
    broken = []
    if 1 - matched > UNMATCHED:
        broken.append(
            f"{1 - matched:.1%} of the heap's bytes were allocated at sites that the plan does "
            "not know"
        )
    kept = not broken and not any(rule.broken for rule in rules)
    return Check(kept=kept, matched_share=matched, broken=broken, rules=rules)


def _asked(counts: dict[str, int]) -> int:
    return counts.get("allocated_bytes", 0) + counts.get("elsewhere_bytes", 0)


def _rule(
    told: RulePromise, counts: dict[str, int], nodes: int, promise: Promise, total: int
) -> RuleCheck:
    found = {int(key[4:]): n for key, n in counts.items() if key.startswith("node")}
    present = sum(found.values())
    misplaced = sum(n for node, n in found.items() if nodes and not nodes >> node & 1)
    made = RuleCheck(
        rule=told.rule, tier=told.tier, at=told.at, promised_bytes=told.allocated_bytes,
        allocations=counts.get("allocations", 0),
        allocated_bytes=counts.get("allocated_bytes", 0),
        peak_bytes=counts.get("peak_bytes", 0),
        elsewhere_bytes=counts.get("elsewhere_bytes", 0),
        pages=present, misplaced_pages=misplaced,
    )  # fmt: skip
    made.broken = _why(made, _asked(counts), promise, total)
    return made


def _why(rule: RuleCheck, asked: int, promise: Promise, total: int) -> str:
    if rule.elsewhere_bytes > ELSEWHERE * asked:
        return f"{rule.elsewhere_bytes / asked:.1%} of its bytes did not go to {rule.tier}"
    if rule.misplaced_pages > ELSEWHERE * rule.pages:
        return f"{rule.misplaced_pages / rule.pages:.1%} of its pages are not on {rule.tier}'s node"
    share = rule.promised_bytes / max(promise.heap.allocated_bytes, 1)
    now = asked / total if total else 0.0
    if share >= _COUNTS and not share / _FACTOR <= now <= share * _FACTOR:
        return f"{now:.1%} of the heap's bytes instead of {share:.1%}"
    return ""
