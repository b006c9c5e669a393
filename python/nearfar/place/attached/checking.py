"""Check a program that was placed from outside against the promise of its plan.

Compared is where its pages were at the last look. From outside, memory in use is seen and not what
was allocated, so that the sizes of rules are not compared with those of the promise.
"""

from __future__ import annotations

from collections.abc import Mapping

from nearfar.place.promise import Promise, RulePromise
from nearfar.place.promise_verdict import ELSEWHERE, judge
from nearfar.records.placement import PlacementResult, RulePlacement
from nearfar.records.plan_check import Check, RuleCheck
from nearfar.units import PAGE_BYTES


def check_placement(promise: Promise, placed: PlacementResult) -> Check:
    """Check the pages that rules place against a promise."""
    found = {rule.rule: rule for rule in placed.rules}
    unapplied = {rule.rule: rule.why for rule in placed.unapplied}
    check = Check(kept=True, rules=[_rule(each, found, unapplied) for each in promise.rules])
    if not placed.wanted_bytes:
        check.broken.append("the program ended before any of its memory was looked at")
    judge(check, [rule.allocated_bytes for rule in check.rules])
    return check


def _rule(
    promised: RulePromise, found: Mapping[int, RulePlacement], unapplied: Mapping[int, str]
) -> RuleCheck:
    placed = found.get(promised.rule)
    wanted = placed.wanted_bytes if placed else 0
    elsewhere = wanted - placed.placed_bytes if placed else 0
    made = RuleCheck(
        rule=promised.rule,
        tier=promised.tier,
        memory="globals" if placed and " globals=" in placed.text else "mapping",
        at=promised.at,
        promised_bytes=promised.allocated_bytes,
        allocations=placed.region_count if placed else 0,
        allocated_bytes=wanted,
        peak_bytes=wanted,
        elsewhere_bytes=elsewhere,
        pages=wanted // PAGE_BYTES,
        misplaced_pages=elsewhere // PAGE_BYTES,
    )
    if promised.rule in unapplied:
        made.broken = f"not applied from outside: {unapplied[promised.rule]}"
    elif elsewhere > ELSEWHERE * wanted:
        made.broken = f"{elsewhere / wanted:.1%} of its pages are not on {promised.tier}'s node"
    return made
