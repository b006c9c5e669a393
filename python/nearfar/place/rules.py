"""From verdicts on sites to the rules of a plan: as few return addresses a rule as tell them apart.

A rule of one address is found fastest and holds most widely: a site that is reached in another way
with another input is still matched. Addresses further out are named only where the same innermost
ones lead to sites of different verdicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nearfar.place.sites import Frame, Site

#: Rules that libhmalloc counts are 100 (hmalloc(3)); the last one takes what no other does.
MOST_RULES = 99

Chain = tuple[Frame, ...]


@dataclass(frozen=True)
class Rule:
    """Sites that go to one tier by one chain of return addresses."""

    tier: str
    chain: Chain
    sites: tuple[Site, ...]

    def condition(self) -> str:
        """``site=…`` as docs/formats/plan.md has it."""
        return "site=" + "<".join(frame.in_plan() for frame in self.chain)


def rules_for(
    sites: Iterable[Site], near: frozenset[int], gains: Mapping[int, float]
) -> list[Rule]:
    """Rules for the heap's sites, ``near`` being numbers of those that stay near, ``gains`` what
    each gains there.

    Longer chains first, since the first rule that holds decides. Of more than ``MOST_RULES``, those
    of most weight in bytes and in time are kept.
    """
    movable = [site for site in sites if site.is_movable()]
    by_chain: dict[Chain, list[Site]] = defaultdict(list)
    for site in movable:
        by_chain[_shortest(site, movable, near)].append(site)
    rules = [
        Rule("near" if group[0].number in near else "far", chain, tuple(group))
        for chain, group in by_chain.items()
    ]
    kept = sorted(rules, key=lambda rule: -_weight(rule, movable, gains))[:MOST_RULES]
    return sorted(kept, key=lambda rule: (-len(rule.chain), rule.sites[0].number))


def _shortest(site: Site, others: Sequence[Site], near: frozenset[int]) -> Chain:
    """The shortest beginning of a site's chain that only sites of its verdict have."""
    chain = tuple(frame for frame in site.frames if frame.can_be_told())
    for length in range(1, len(chain)):
        beginning = chain[:length]
        same = [other for other in others if other.frames[:length] == beginning]
        if len({other.number in near for other in same}) == 1:
            return beginning
    return chain


def _weight(rule: Rule, movable: Sequence[Site], gains: Mapping[int, float]) -> float:
    """A rule's share of all bytes and of all gains."""
    bytes_ = sum(site.allocated_bytes for site in movable) or 1
    all_gains = sum(gains.values()) or 1.0
    return sum(
        site.allocated_bytes / bytes_ + gains.get(site.number, 0.0) / all_gains
        for site in rule.sites
    )
