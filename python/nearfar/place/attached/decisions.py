"""Which pages of a region a plan's rules place: the first rule that holds decides, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nearfar.place.attached.regions import ProcessRegion, written_name
from nearfar.plan_files.reader import PlanRule
from nearfar.units import PAGE_BYTES


@dataclass(frozen=True)
class DecidedRange:
    """Pages of one region that one rule places."""

    start: int
    end: int
    rule: PlanRule


class Decisions:
    """The rules that can be applied from outside, ready for many regions."""

    def __init__(self, rules: Iterable[PlanRule]) -> None:
        """``rules`` in the order of the plan; those that only the program itself can apply are
        left out."""
        self._rules: dict[tuple[str, int | None], list[PlanRule]] = {}
        for rule in rules:
            if not rule.why_unseen():
                self._rules.setdefault((rule.placed, rule.address), []).append(rule)

    def of(self, region: ProcessRegion) -> list[DecidedRange]:
        """The decided pages of a region, in the order of addresses."""
        found: list[DecidedRange] = []
        undecided = [(region.start, region.end)]
        for rule in self._candidates(region):
            span = _span(region, rule)
            left: list[tuple[int, int]] = []
            for start, end in undecided:
                low, high = max(start, span[0]), min(end, span[1])
                if low >= high:
                    left.append((start, end))
                    continue
                found.append(DecidedRange(low, high, rule))
                left += [part for part in ((start, low), (high, end)) if part[0] < part[1]]
            undecided = left
            if not undecided:
                break
        return sorted(found, key=lambda decided: decided.start)

    def _candidates(self, region: ProcessRegion) -> Sequence[PlanRule]:
        anywhere = self._rules.get((region.kind, None), ())
        here = self._rules.get((region.kind, region.start), ())
        both = sorted((*anywhere, *here), key=lambda rule: rule.number)
        return [rule for rule in both if _holds(rule, region)]


def _holds(rule: PlanRule, region: ProcessRegion) -> bool:
    least, most = rule.sizes
    if not least <= region.size() <= most:
        return False
    match region.kind:
        case "name":
            return rule.name == written_name(region.name)
        case "file":
            return rule.name == region.name
        case "globals":
            return _is_object(region, rule.name)
    return True


def _is_object(region: ProcessRegion, name: str) -> bool:
    """Whether globals are those of an object: a build ID or its beginning, ``name:FILE``, or
    ``name:``, which is the program."""
    if not name.startswith("name:"):
        return region.build_id.startswith(name)
    file = name.removeprefix("name:")
    return region.name == file if file else region.is_program


def _span(region: ProcessRegion, rule: PlanRule) -> tuple[int, int]:
    """The pages of a region that hold bytes of the rule's range."""
    low, high = rule.span
    return region.start + low // PAGE_BYTES * PAGE_BYTES, region.start + -(
        -high // PAGE_BYTES
    ) * PAGE_BYTES
