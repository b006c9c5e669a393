"""Check a run under a plan against the plan's promise.

Compared are the tiers of each rule's blocks, the NUMA nodes of their pages, the bytes allocated at
each site, and the fraction of the heap that matches the plan; if the program was traced again, also
the memory lines that each site read and wrote. Mappings are compared with each other in the same
way, and not with the heap; of global variables only the nodes of their pages are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from nearfar.place.promise import Promise, RulePromise
from nearfar.records.choices import RuleMemory
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
#: A node's fraction of the pages may differ from its weight by this, and by these standard errors.
_WEIGHTS_MISSED, _STANDARD_ERRORS = 0.02, 3.0


class RuleCheck(BaseModel):
    """One rule: promised and counted. ``broken`` gives the reason; empty if the rule was kept."""

    model_config = ConfigDict(extra="forbid")

    rule: Count
    tier: str
    memory: RuleMemory = "heap"
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
    broken: list[str] = Field(default_factory=list, description="what concerns no single rule")
    rules: list[RuleCheck] = Field(default_factory=list)


def hold(promise: Promise, processes: Sequence[Process], traffic: Traffic | None = None) -> Check:
    """Check the counts of libhmalloc in all processes of a run, and of a traced run, against a
    promise."""
    run = _Counted.of(processes)
    rules = [_rule(promised, run, promise) for promised in promise.rules]
    check = Check(kept=True, matched_share=0.0, rules=rules)
    mapped = run.total("mapping")
    heap = run.matched(promise, "heap")
    check.matched_share = float(bool(mapped)) if heap is None else heap
    if 1 - check.matched_share > UNMATCHED:
        check.broken.append(
            f"{1 - check.matched_share:.1%} of the heap's bytes were allocated at sites that the "
            "plan does not know"
        )
    if any(rule.memory == "mapping" for rule in rules):
        check.matched_mapping_share = run.matched(promise, "mapping")
    if 1 - (check.matched_mapping_share or 1.0) > UNMATCHED:
        check.broken.append(
            f"{1 - (check.matched_mapping_share or 1.0):.1%} of the mapped bytes were mapped by "
            "calls that the plan does not know"
        )
    if traffic is not None:
        _hold_traffic(check, promise, traffic)
    check.kept = not check.broken and not any(rule.broken for rule in check.rules)
    return check


@dataclass
class _Counted:
    """Counts of all processes by rule, and what the rules are for."""

    rules: dict[int, dict[str, int]]
    memory: dict[int, RuleMemory]
    nodes: dict[str, int]
    weights: dict[str, dict[int, int]]

    @classmethod
    def of(cls, processes: Sequence[Process]) -> _Counted:
        """Add up the counts of processes."""
        found = cls({}, {}, {}, {})
        for process in processes:
            for name, tier in process.tiers.items():
                found.nodes[name] = tier.get("nodes", 0)
                found.weights[name] = _by_node(tier, "weight")
            for number, rule in process.rules.items():
                found.memory[number] = rule.memory
                sums = found.rules.setdefault(number, {})
                for key, value in rule.counts.items():
                    sums[key] = sums.get(key, 0) + value
        return found

    def asked(self, rule: int) -> int:
        """Bytes that reached a rule."""
        counts = self.rules.get(rule, {})
        return counts.get("allocated_bytes", 0) + counts.get("elsewhere_bytes", 0)

    def kind(self, rule: int) -> RuleMemory:
        """The memory that a rule is for."""
        return self.memory.get(rule, "heap")

    def total(self, memory: RuleMemory) -> int:
        """Bytes that reached the rules for a memory."""
        return sum(self.asked(rule) for rule in self.rules if self.kind(rule) == memory)

    def matched(self, promise: Promise, memory: RuleMemory) -> float | None:
        """The fraction of these that reached rules with a promise; None if the rules got none."""
        known = [each.rule for each in promise.rules if self.kind(each.rule) == memory]
        total = self.total(memory)
        return sum(self.asked(rule) for rule in known) / total if total else None


def _hold_traffic(check: Check, promise: Promise, traffic: Traffic) -> None:
    """Check lines by rule against their promised fractions. Lines of mappings are not counted."""
    of_heap = [
        (promised, rule)
        for promised, rule in zip(promise.rules, check.rules, strict=True)
        if rule.memory == "heap"
    ]
    promised_lines = sum(promised.lines_promised() for promised, _ in of_heap)
    lines, near = traffic.lines, {True: 0, False: 0}
    promised_near = 0
    for promised, rule in of_heap:
        rule.promised_reads, rule.promised_writes = promised.reads or 0, promised.writes or 0
        rule.reads, rule.writes = traffic.rules.get(promised.rule, (0, 0))
        near[promised.tier == "near"] += rule.reads + rule.writes
        promised_near += promised.lines_promised() * (promised.tier == "near")
        share = promised.lines_promised() / max(promised_lines, 1)
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


def _rule(promised: RulePromise, run: _Counted, promise: Promise) -> RuleCheck:
    counts = run.rules.get(promised.rule, {})
    nodes = run.nodes.get(promised.tier, 0)
    found = _by_node(counts, "node")
    present = sum(found.values())
    misplaced = sum(n for node, n in found.items() if nodes and not nodes >> node & 1)
    made = RuleCheck(
        rule=promised.rule,
        tier=promised.tier,
        memory=run.kind(promised.rule),
        at=promised.at,
        promised_bytes=promised.allocated_bytes,
        allocations=counts.get("allocations", 0),
        allocated_bytes=counts.get("allocated_bytes", 0),
        peak_bytes=counts.get("peak_bytes", 0),
        elsewhere_bytes=counts.get("elsewhere_bytes", 0),
        pages=present,
        misplaced_pages=misplaced,
    )
    made.broken = _why(made, run, promise) or _why_shares(
        found, run.weights.get(promised.tier, {}), promised.tier
    )
    return made


def _by_node(counts: Mapping[str, int], prefix: str) -> dict[int, int]:
    """Counts whose key is the prefix and the number of a node."""
    numbers = {key.removeprefix(prefix): count for key, count in counts.items()}
    return {int(key): count for key, count in numbers.items() if key.isdigit()}


def _why_shares(pages: Mapping[int, int], weights: Mapping[int, int], tier: str) -> str:
    """Why the pages on each node are not in proportion to the weights of the tier."""
    total, present = sum(weights.values()), sum(pages.values())
    for node, weight in sorted(weights.items()):
        if not present:
            break
        share, found = weight / total, pages.get(node, 0) / present
        error = math.sqrt(share * (1 - share) / present)
        if abs(found - share) > _WEIGHTS_MISSED + _STANDARD_ERRORS * error:
            return f"{found:.1%} of its pages are on node {node}: {tier} has {share:.1%} there"
    return ""


def _why(rule: RuleCheck, run: _Counted, promise: Promise) -> str:
    asked = run.asked(rule.rule)
    if rule.elsewhere_bytes > ELSEWHERE * asked:
        return f"{rule.elsewhere_bytes / asked:.1%} of its bytes did not go to {rule.tier}"
    if rule.misplaced_pages > ELSEWHERE * rule.pages:
        return f"{rule.misplaced_pages / rule.pages:.1%} of its pages are not on {rule.tier}'s node"
    if rule.memory == "globals":
        return "" if asked else "its object was not loaded at the start"
    promised = _promised_bytes(rule.memory, run, promise)
    share = rule.promised_bytes / max(promised, 1)
    total = run.total(rule.memory)
    now = asked / total if total else 0.0
    if _changed(share, now):
        what = "the heap's" if rule.memory == "heap" else "the mapped"
        return f"{now:.1%} of {what} bytes instead of {share:.1%}"
    return ""


def _promised_bytes(memory: RuleMemory, run: _Counted, promise: Promise) -> int:
    """Promised bytes of the whole heap, or of all rules for mappings."""
    if memory == "heap":
        return promise.heap.allocated_bytes
    return sum(each.allocated_bytes for each in promise.rules if run.kind(each.rule) == memory)
