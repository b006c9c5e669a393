"""From near sites to the rules of a plan, each with as few return addresses as distinguish it.

A rule of one address is the fastest to match and the most robust: a site that is reached through
other callers with another input still matches. Outer addresses are named only if the same innermost
ones lead to sites on different tiers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nearfar.place.sites import Frame, Site

#: libhmalloc counts 100 rules (hmalloc(3)); the last one is the default rule.
MOST_RULES = 99

Chain = tuple[Frame, ...]


@dataclass(frozen=True)
class Rule:
    """Sites that one chain of return addresses assigns to one tier."""

    tier: str
    chain: Chain
    sites: tuple[Site, ...]

    def condition(self) -> str:
        """``site=…`` in the syntax of docs/formats/plan.md."""
        return "site=" + "<".join(frame.in_plan() for frame in self.chain)


def rules_for(
    sites: Iterable[Site], near: frozenset[int], gains: Mapping[int, float]
) -> list[Rule]:
    """Rules for the heap's sites; ``near`` has the numbers of near sites, ``gains`` their gains.

    Longer chains come first, since the first matching rule decides. If there are more than
    ``MOST_RULES``, those with the largest bytes and time are kept.
    """
    movable = [site for site in sites if site.is_movable()]
    verdicts = _verdicts(movable, near)
    by_chain: dict[Chain, list[Site]] = defaultdict(list)
    for site in movable:
        by_chain[_shortest(site, verdicts)].append(site)
    rules = [
        Rule("near" if group[0].number in near else "far", chain, tuple(group))
        for chain, group in by_chain.items()
    ]
    all_bytes = sum(site.allocated_bytes for site in movable) or 1
    all_gains = sum(gains.values()) or 1.0
    kept = sorted(
        rules,
        key=lambda rule: (
            -sum(
                site.allocated_bytes / all_bytes + gains.get(site.number, 0.0) / all_gains
                for site in rule.sites
            )
        ),
    )[:MOST_RULES]
    return sorted(kept, key=lambda rule: (-len(rule.chain), rule.sites[0].number))


def _verdicts(sites: Iterable[Site], near: frozenset[int]) -> dict[Chain, set[bool]]:
    """Tiers of the sites below each prefix of their chains."""
    found: dict[Chain, set[bool]] = defaultdict(set)
    for site in sites:
        for length in range(1, len(site.frames) + 1):
            found[site.frames[:length]].add(site.number in near)
    return found


def _shortest(site: Site, verdicts: Mapping[Chain, set[bool]]) -> Chain:
    """The shortest prefix of a site's chain that only sites of its tier have."""
    chain = tuple(frame for frame in site.frames if frame.is_nameable())
    for length in range(1, len(chain)):
        if len(verdicts.get(chain[:length], ())) == 1:
            return chain[:length]
    return chain
