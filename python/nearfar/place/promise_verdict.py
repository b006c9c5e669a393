"""When the promise of a plan is kept: the verdict of ``run --check`` on all memory together.

    weight of a rule = max(its fraction of the promised bytes, its fraction of this run's bytes)

Bytes are those of heap, mappings and globals together. The weights of broken rules and the fraction
of this run's bytes at sites that the plan does not know are added: the promise is kept if the sum
is at most 5 %, and nothing else of it is broken. So a small heap next to large mappings counts by
its size, and a rule without memory in this run counts by its promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearfar.records.plan_check import Check

#: Fraction of misplaced bytes or pages of a rule above which the rule is broken.
ELSEWHERE = 0.01
#: Fraction of all memory, or of the traffic, above which a promise is broken.
UNMATCHED = 0.05


def judge(check: Check, asked: Sequence[int], unknown: int = 0) -> None:
    """Add the weights of rules, the fraction that is kept, and the verdict. ``asked``: bytes of
    this run by rule; ``unknown``: bytes that reached no rule with a promise."""
    promised = max(sum(rule.promised_bytes for rule in check.rules), 1)
    total = max(sum(asked) + unknown, 1)
    for rule, size in zip(check.rules, asked, strict=True):
        rule.weight = max(rule.promised_bytes / promised, size / total)
    lost = sum(rule.weight for rule in check.rules if rule.broken)
    check.kept_share = max(1 - lost - unknown / total, 0.0)
    if unknown > UNMATCHED * total:
        check.broken.append(
            f"{unknown / total:.1%} of the memory was allocated or mapped at sites that the plan "
            "does not know"
        )
    check.kept = not check.broken and 1 - check.kept_share <= UNMATCHED
