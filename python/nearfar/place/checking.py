"""Check a run under a plan against the plan's promise.

Compared are the tiers of each rule's blocks, the NUMA nodes of their pages, the bytes allocated at
each site, and the fraction of the memory that matches the plan; if the program was traced again,
also the memory lines that each site read and wrote. Whether a rule got the promised fraction is
compared among the rules for mappings, and among those for the heap; of global variables only the
nodes of their pages are compared. The verdict counts all memory together (``keeping``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.place.promise import Promise, RulePromise
from nearfar.place.promise_verdict import ELSEWHERE, UNMATCHED, judge
from nearfar.records.choices import RuleMemory
from nearfar.records.plan_check import Check, RuleCheck

if TYPE_CHECKING:
    from nearfar.place.traffic import Traffic
    from nearfar.records.run_statistics import ProcessStatistics

#: With another input, a site's fraction of the heap's bytes or lines may change by this factor.
_FACTOR = 2.0
#: Smaller promised fractions are not judged.
_COUNTS = 0.05
#: Allowed difference of a node's fraction of the pages from its weight.
_WEIGHTS_MISSED = 0.02
#: Standard errors by which it may differ in addition.
_STANDARD_ERRORS = 3.0


def check_run(
    promise: Promise,
    processes: Sequence[ProcessStatistics],
    traffic: Traffic | None = None,
    *,
    one_node: bool = False,
) -> Check:
    """Check the counts of libhmalloc in all processes of a run, and of a traced run, against a
    promise. With ``one_node``, pages of a tier on several nodes can only be on that node."""
    run = _Counted.of(processes)
    if one_node:
        run.weights.clear()
    rules = [_rule(promised, run, promise) for promised in promise.rules]
    heap = run.matched(promise, "heap")
    check = Check(kept=True, rules=rules)
    check.matched_share = float(bool(run.total("mapping"))) if heap is None else heap
    if any(rule.memory == "mapping" for rule in rules):
        check.matched_mapping_share = run.matched(promise, "mapping")
    if traffic is not None:
        _check_traffic(check, promise, traffic)
    judge(check, [run.asked(rule.rule) for rule in rules], run.unknown(check))
    return check


@dataclass
class _Counted:
    """Counts of all processes by rule, and what the rules are for."""

    rules: dict[int, dict[str, int]]
    memory: dict[int, RuleMemory]
    tiers: dict[int, str]
    nodes: dict[str, int]
    weights: dict[str, dict[int, int]]

    @classmethod
    def of(cls, processes: Sequence[ProcessStatistics]) -> _Counted:
        """Add up the counts of processes."""
        found = cls({}, {}, {}, {}, {})
        for process in processes:
            for name, tier in process.tiers.items():
                found.nodes[name] = tier.get("nodes", 0)
                found.weights[name] = _by_node(tier, "weight")
            for number, rule in process.rules.items():
                found.memory[number] = rule.memory
                found.tiers[number] = rule.tier
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

    def unknown(self, check: Check) -> int:
        """Bytes at sites without a promise; of mappings only if the plan promises some."""
        heap, mapped = check.matched_share, check.matched_mapping_share
        missing = (0.0 if heap is None else 1 - heap) * self.total("heap")
        missing += (0.0 if mapped is None else 1 - mapped) * self.total("mapping")
        return round(missing)

    def matched(self, promise: Promise, memory: RuleMemory) -> float | None:
        """The fraction of these that reached rules with a promise; None if the rules got none."""
        known = [each.rule for each in promise.rules if self.kind(each.rule) == memory]
        total = self.total(memory)
        return sum(self.asked(rule) for rule in known) / total if total else None


def _check_traffic(check: Check, promise: Promise, traffic: Traffic) -> None:
    """Check lines by rule against their promised fractions. Lines of mappings are not counted."""
    of_heap = [
        (promised, rule)
        for promised, rule in zip(promise.rules, check.rules, strict=True)
        if rule.memory == "heap"
    ]
    promised_lines = sum(promised.lines_promised() for promised, _ in of_heap)
    lines, near = traffic.lines, {True: 0, False: 0}
    promised_near, changed = 0, 0.0
    for promised, rule in of_heap:
        rule.promised_reads, rule.promised_writes = promised.reads or 0, promised.writes or 0
        rule.reads, rule.writes = traffic.rules.get(promised.rule, (0, 0))
        near[promised.tier == "near"] += rule.reads + rule.writes
        promised_near += promised.lines_promised() * (promised.tier == "near")
        share = promised.lines_promised() / max(promised_lines, 1)
        now = (rule.reads + rule.writes) / lines if lines else 0.0
        if not rule.broken and _changed(share, now):
            rule.broken = f"{now:.1%} of the heap's traffic instead of {share:.1%}"
            changed += max(share, now)
    unmatched = traffic.unmatched / lines if lines else 0.0
    check.matched_traffic_share = 1 - unmatched
    check.near_traffic_share = near[True] / max(near[True] + near[False], 1)
    check.promised_near_traffic_share = promised_near / max(promised_lines, 1)
    weight = _stalls_of_heap(promise, check)
    if unmatched * weight > UNMATCHED:
        check.broken.append(
            f"{unmatched:.1%} of the heap's traffic goes to sites that the plan does not know"
        )
    if changed * weight > UNMATCHED:
        check.broken.append("sites have other fractions of the heap's traffic than promised")


def _stalls_of_heap(promise: Promise, check: Check) -> float:
    """The fraction of the promised stall time that is at sites of the heap, used as the weight of
    the heap's traffic."""
    both = zip(promise.rules, check.rules, strict=True)
    heap = sum(promised.stall_share for promised, rule in both if rule.memory == "heap")
    total = sum(promised.stall_share for promised in promise.rules)
    return heap / total if total else 1.0


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
    tier = run.tiers.get(rule.rule, rule.tier)
    if tier != rule.tier:
        return f"the plan's rule places it on {tier}"
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
        return promise.whole.allocated_bytes
    return sum(each.allocated_bytes for each in promise.rules if run.kind(each.rule) == memory)
