"""Assign the memory traffic of a traced run to the rules of a plan, site by site.

A site belongs to the first rule whose chain of return addresses is a prefix of its own, as in
libhmalloc. Rules with a size, a thread or a ratio depend on single allocations, not on sites. Rules
for mappings and globals are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.files import read_text
from nearfar.place.sites import Frame, Site

_BY_NAME = "name:"


@dataclass(frozen=True)
class SiteRule:
    """A rule by its number in the file, and its required frames, innermost first."""

    number: int
    chain: tuple[str, ...]

    def holds(self, site: Site) -> bool:
        """Whether the rule's frames are a prefix of the site's chain."""
        if len(site.frames) < len(self.chain):
            return False
        pairs = zip(self.chain, site.frames, strict=False)
        return all(_is_frame(wanted, frame) for wanted, frame in pairs)


def _is_frame(wanted: str, frame: Frame) -> bool:
    name, _, offset = wanted.rpartition("+")
    if int(offset, 16) != frame.offset:
        return False
    if name.startswith(_BY_NAME):
        return frame.path.rpartition("/")[2] == name.removeprefix(_BY_NAME)
    return bool(name) and frame.build_id.startswith(name)


def rules_by_site(plan: Path) -> list[SiteRule]:
    """The rules of a plan for heap blocks, up to the default rule.

    Raises BadInputError for rules that do not depend on the site alone.
    """
    found: list[SiteRule] = []
    number = 0
    for line in read_text(plan, "name a plan file").splitlines():
        words = line.split("#")[0].split()
        if words[:1] != ["rule"]:
            continue
        number += 1
        conditions = dict(word.partition("=")[::2] for word in words[2:])
        if conditions.keys() & {"map", "globals"}:
            continue
        unknown = set(conditions) - {"site", "budget"}
        if unknown:
            raise BadInputError(
                f"rule {number} goes by {' and '.join(sorted(unknown))}, and not by site alone"
            )
        if "site" not in conditions:
            break
        found.append(SiteRule(number, tuple(conditions["site"].split("<"))))
    return found


@dataclass(frozen=True)
class Traffic:
    """Lines read and written, by rule; and heap lines that no rule matches."""

    rules: dict[int, tuple[int, int]]
    unmatched: int

    @property
    def lines(self) -> int:
        """Lines of the whole heap."""
        return self.unmatched + sum(reads + writes for reads, writes in self.rules.values())


def count(rules: Sequence[SiteRule], sites: Iterable[Site]) -> Traffic:
    """Count the lines of each rule's sites in a traced run."""
    found = {rule.number: (0, 0) for rule in rules}
    unmatched = 0
    for site in sites:
        if site.kind != "heap":
            continue
        rule = next((rule for rule in rules if rule.holds(site)), None)
        if rule is None:
            unmatched += site.reads + site.writes
        else:
            reads, writes = found[rule.number]
            found[rule.number] = (reads + site.reads, writes + site.writes)
    return Traffic(found, unmatched)
