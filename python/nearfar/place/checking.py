"""A run under a plan, held against what the plan promised.

What is compared: where the blocks of each rule went, where the kernel has put their pages, how much
was allocated at each site, how much of the heap the plan knew; and, where the program was traced
once more, how many lines of memory each site read and wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from nearfar.place.promise import Promise, RulePromise
from nearfar.records.shape import Count, Share

if TYPE_CHECKING:
    from nearfar.place.accounts import Process
    from nearfar.place.traffic import Traffic

#: Shares beyond which a promise is broken: of bytes or pages elsewhere, of bytes or lines without a
#: rule.
ELSEWHERE, UNMATCHED = 0.01, 0.05
#: A site's share of the heap's bytes, or of its lines, may change by this factor with another
#: input, where it was promised at least ``_COUNTS``.
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
    promised_reads: Count = 0
    promised_writes: Count = 0
    reads: Count | None = Field(default=None, description="lines, in a traced run of its own")
    writes: Count | None = None
    broken: str = ""


class Check(BaseModel):
    """A promise and a run."""

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
    """Hold what libhmalloc counted in all processes of a run against a promise, and what was
    counted in a traced one."""
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
    check = Check(kept=True, matched_share=matched, broken=broken, rules=rules)
    if traffic is not None:
        _hold_traffic(check, promise, traffic)
    check.kept = not check.broken and not any(rule.broken for rule in check.rules)
    return check


def _hold_traffic(check: Check, promise: Promise, traffic: Traffic) -> None:
    """Lines by rule, against the shares of lines that were promised."""
    promised_lines = sum(rule.reads + rule.writes for rule in promise.rules)
    lines, near = traffic.lines, {True: 0, False: 0}
    promised_near = 0
    for told, rule in zip(promise.rules, check.rules, strict=True):
        rule.promised_reads, rule.promised_writes = told.reads, told.writes
        rule.reads, rule.writes = traffic.rules.get(told.rule, (0, 0))
        near[told.tier == "near"] += rule.reads + rule.writes
        promised_near += (told.reads + told.writes) * (told.tier == "near")
        share = (told.reads + told.writes) / max(promised_lines, 1)
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
    """Whether a share that counts is beyond what another input may make of it."""
    return promised >= _COUNTS and not promised / _FACTOR <= now <= promised * _FACTOR


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
    if _changed(share, now):
        return f"{now:.1%} of the heap's bytes instead of {share:.1%}"
    return ""
