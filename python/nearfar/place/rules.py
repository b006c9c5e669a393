"""From near sites to the rules of a plan, each with as few return addresses as distinguish it.

Memory without a call chain has its own selector, and parts of a mapping have ranges.

A rule of one address is the fastest to match and the most robust: a site that is reached through
other callers with another input still matches. Outer addresses are named only if the same innermost
ones lead to sites on different tiers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nearfar.place.fractions import NearParts
from nearfar.place.sites import MIN_PLACED_BYTES, BlockSizes, Frame, Part, Site

#: Regions of a class of sizes (``regions.SampledRegion``).
_BY_SIZE = re.compile(r"map=anonymous size=(\d+)\.\.(\d+)")
#: libhmalloc keeps counts for 100 rules (hmalloc(3)), including the default rule.
MAX_RULES = 99

Chain = tuple[Frame, ...]
Prefix = tuple[str, Chain]
#: A tier, and the sizes of its blocks.
Placed = tuple[str, BlockSizes | None]


@dataclass(frozen=True)
class Name:
    """Name of sites in a plan: a call chain that allocates or maps, or a selector; and a part
    or sizes of blocks."""

    keyword: str
    chain: Chain = ()
    part: Part | None = None
    sizes: BlockSizes | None = None

    def condition(self) -> str:
        """In the syntax of docs/formats/plan.md."""
        said = self.keyword
        if self.chain:
            said += "=" + "<".join(frame.in_plan() for frame in self.chain)
        if self.part is not None:
            begin, end = self.part
            said += f" range={begin}..{'' if end is None else end}"
        if self.sizes is not None:
            least, most = self.sizes
            said += f" size={least}..{'' if most is None else most}"
        return said


@dataclass(frozen=True)
class Rule:
    """Sites with one name, and their tier."""

    tier: str
    name: Name
    sites: tuple[Site, ...]


def rules_for(sites: Iterable[Site], placing: NearParts, gains: Mapping[int, float]) -> list[Rule]:
    """Rules for the movable sites; ``gains``: of near sites, by number.

    Longer chains come first, since the first matching rule decides. If there are more than
    ``MAX_RULES``, those with the largest bytes and time are kept.
    """
    movable = [site for site in sites if site.is_movable() and _matters(site, gains)]
    verdicts = _verdicts(movable, placing)
    by_name: dict[Name, list[Site]] = defaultdict(list)
    for site in movable:
        by_name[_name(site, verdicts)].append(site)
    rules = [
        Rule(placing.tier(group[0].number), name, tuple(group)) for name, group in by_name.items()
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
    )[:MAX_RULES]
    ordered = sorted(kept, key=lambda rule: (-len(rule.name.chain), rule.sites[0].number))
    return _without_gaps(ordered)


def _without_gaps(rules: list[Rule]) -> list[Rule]:
    """Rules for regions by size, so that each size has a class: with another input a region grows
    beyond the largest size that was seen, or falls between two."""
    names = {rule.name.keyword for rule in rules}
    found = [(match, name) for name in names if (match := _BY_SIZE.fullmatch(name))]
    sizes = sorted((int(match[1]), int(match[2]), name) for match, name in found)
    wider, least = {}, min(MIN_PLACED_BYTES, sizes[0][0] if sizes else MIN_PLACED_BYTES)
    for _, most, name in sizes:
        top = "" if name == sizes[-1][2] else most
        wider[name] = f"map=anonymous size={least}..{top}"
        least = most + 1
    return [
        replace(
            rule, name=replace(rule.name, keyword=wider.get(rule.name.keyword, rule.name.keyword))
        )
        for rule in rules
    ]


def _matters(site: Site, gains: Mapping[int, float]) -> bool:
    """Whether anything is known of its bytes or its gain: of sampled blocks, some sites have
    neither."""
    return bool(site.allocated_bytes or gains.get(site.number))


def _name(site: Site, verdicts: Mapping[Prefix, set[Placed]]) -> Name:
    if site.selector:
        return Name(site.selector, (), site.part)
    keyword = "site" if site.kind == "heap" else "map"
    return Name(keyword, _shortest(site, verdicts), site.part, site.block_sizes)


def _verdicts(sites: Iterable[Site], placing: NearParts) -> dict[Prefix, set[Placed]]:
    """Tiers of the sites below each prefix of their chains, by kind, and by sizes of blocks."""
    found: dict[Prefix, set[Placed]] = defaultdict(set)
    for site in sites:
        placed = placing.tier(site.number), site.block_sizes
        for length in range(1, len(site.frames) + 1):
            found[site.kind, site.frames[:length]].add(placed)
    return found


def _shortest(site: Site, verdicts: Mapping[Prefix, set[Placed]]) -> Chain:
    """The shortest prefix of a site's chain that only sites of its tier have. For a part of a
    mapping: the whole chain."""
    chain = tuple(frame for frame in site.frames if frame.is_nameable())
    if site.part is not None:
        return chain
    for length in range(1, len(chain)):
        if len(verdicts.get((site.kind, chain[:length]), ())) == 1:
            return chain[:length]
    return chain
