"""Check a run under a plan against the plan's promise.

Compared are the tiers of each rule's blocks, the NUMA nodes of their pages, the bytes allocated at
each site, and the fraction of the heap that matches the plan; if the program was traced again, also
the memory lines that each site read and wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from nearfar.place.promise import Promise, RulePromise
from nearfar.records.shape import Count, Share

if TYPE_CHECKING:
    from nearfar.place.run_statistics import Process
    from nearfar.place.traffic import Traffic

#: Fractions beyond which a promise is broken: of misplaced bytes or pages, of unmatched bytes or
#: lines.
ELSEWHERE, UNMATCHED = 0.01, 0.05
#: A site's fraction of the heap's bytes, or of its lines, may change by this factor with another
#: input, if at least ``_COUNTS`` was promised.
_FACTOR, _COUNTS = 2.0, 0.05


class RuleCheck(BaseModel):
    """One rule: promised and counted. ``broken`` gives the reason; empty if the rule was kept."""

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
    promised_reads: Count = 0
    promised_writes: Count = 0
    reads: Count | None = Field(default=None, description="lines, in a traced run of its own")
    writes: Count | None = None
    broken: str = ""


class Check(BaseModel):
    """A promise and the run checked against it."""

    model_config = ConfigDict(extra="forbid")

    kept: bool
    matched_share: Share = Field(description="of the allocated bytes: by a rule with a site")
    matched_traffic_share: Share | None = Field(
        default=None, description="of the heap's lines; absent where traffic was not counted"
    )
    near_traffic_share: Share | None = Field(
        default=None, description="of the lines at known sites: at those that are near"
    )
    promised_near_traffic_share: Share | None = None
    broken: list[str] = Field(default_factory=list, description="what concerns no single rule")
    rules: list[RuleCheck] = Field(default_factory=list)


def hold(promise: Promise, processes: Sequence[Process], traffic: Traffic | None = None) -> Check:
    """Check the counts of libhmalloc in all processes of a run, and of a traced run, against a
    promise."""
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
        _rule(promised, counted.get(promised.rule, {}), nodes.get(promised.tier, 0), promise, total)
        for promised in promise.rules
    ]
    known = sum(_asked(counted.get(promised.rule, {})) for promised in promise.rules)
    matched = known / total if total else 0.0
    broken = []
    if 1 - matched > UNMATCHED:
        broken.append(
            f"{1 - matched:.1%} of the heap's bytes were allocated at sites that the plan does "
            "not know"
        )
    check = Check(kept=True, matched_share=matched, broken=broken, rules=rules)
    if traffic is not None:
        _hold_traffic(check, promise, traffic)
    check.kept = not check.broken and not any(rule.broken for rule in check.rules)
    return check


def _hold_traffic(check: Check, promise: Promise, traffic: Traffic) -> None:
    """Check lines by rule against their promised fractions."""
    promised_lines = sum(rule.reads + rule.writes for rule in promise.rules)
    lines, near = traffic.lines, {True: 0, False: 0}
    promised_near = 0
    for promised, rule in zip(promise.rules, check.rules, strict=True):
        rule.promised_reads, rule.promised_writes = promised.reads, promised.writes
        rule.reads, rule.writes = traffic.rules.get(promised.rule, (0, 0))
        near[promised.tier == "near"] += rule.reads + rule.writes
        promised_near += (promised.reads + promised.writes) * (promised.tier == "near")
        share = (promised.reads + promised.writes) / max(promised_lines, 1)
        now = (rule.reads + rule.writes) / lines if lines else 0.0
        if not rule.broken and _changed(share, now):
            rule.broken = f"{now:.1%} of the heap's traffic instead of {share:.1%}"
    check.matched_traffic_share = 1 - traffic.unmatched / lines if lines else 1.0
    check.near_traffic_share = near[True] / max(near[True] + near[False], 1)
    check.promised_near_traffic_share = promised_near / max(promised_lines, 1)
    if lines and traffic.unmatched > UNMATCHED * lines:
        check.broken.append(
            f"{traffic.unmatched / lines:.1%} of the heap's traffic goes to sites that the plan "
            "does not know"
        )


def _changed(promised: float, now: float) -> bool:
    """Whether a significant fraction changed by more than another input may change it."""
    return promised >= _COUNTS and not promised / _FACTOR <= now <= promised * _FACTOR


def _asked(counts: dict[str, int]) -> int:
    return counts.get("allocated_bytes", 0) + counts.get("elsewhere_bytes", 0)


def _rule(
    promised: RulePromise, counts: dict[str, int], nodes: int, promise: Promise, total: int
) -> RuleCheck:
    found = {int(key[4:]): n for key, n in counts.items() if key.startswith("node")}
    present = sum(found.values())
    misplaced = sum(n for node, n in found.items() if nodes and not nodes >> node & 1)
    made = RuleCheck(
        rule=promised.rule,
        tier=promised.tier,
        at=promised.at,
        promised_bytes=promised.allocated_bytes,
        allocations=counts.get("allocations", 0),
        allocated_bytes=counts.get("allocated_bytes", 0),
        peak_bytes=counts.get("peak_bytes", 0),
        elsewhere_bytes=counts.get("elsewhere_bytes", 0),
        pages=present,
        misplaced_pages=misplaced,
    )
    made.broken = _why(made, _asked(counts), promise, total)
    return made


def _why(rule: RuleCheck, asked: int, promise: Promise, total: int) -> str:
    if rule.elsewhere_bytes > ELSEWHERE * asked:
        return f"{rule.elsewhere_bytes / asked:.1%} of its bytes did not go to {rule.tier}"
    if rule.misplaced_pages > ELSEWHERE * rule.pages:
        return f"{rule.misplaced_pages / rule.pages:.1%} of its pages are not on {rule.tier}'s node"
    share = rule.promised_bytes / max(promise.heap.allocated_bytes, 1)
    now = asked / total if total else 0.0
    if _changed(share, now):
        return f"{now:.1%} of the heap's bytes instead of {share:.1%}"
    return ""
