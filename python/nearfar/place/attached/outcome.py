"""The record of what was placed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nearfar.place.attached.kernel_moves import moving_settings
from nearfar.place.attached.node_tiers import described
from nearfar.place.attached.placer import AppliedPlan, Placed
from nearfar.records.placement import (
    MovingSetting,
    PlacementResult,
    RefusedPages,
    RegionPlacement,
    RulePlacement,
    UnappliedRule,
)
from nearfar.units import PAGE_BYTES

if TYPE_CHECKING:
    from nearfar.process.running_process import RunningProcess

#: Regions in a record.
MAX_REGIONS = 100


def placement_result(
    program: RunningProcess, command: str, placed: Placed, wanted: AppliedPlan
) -> PlacementResult:
    """The result of placing a program by a plan. ``command``: its path, read before it ended."""
    result = _totals(program, command, placed)
    result.plan = str(wanted.plan.path)
    result.tiers = {tier.name: tier.specification for tier in wanted.tiers.values()}
    result.rules = list(_rules(placed, wanted))
    result.regions = _regions(placed)
    result.unapplied = [
        UnappliedRule(rule=rule.number, line=rule.line, text=rule.text, why=rule.why_unseen())
        for rule in wanted.unapplied()
    ]
    return result


def revert_result(
    program: RunningProcess, command: str, placed: Placed, record: str, journaled_pages: int
) -> PlacementResult:
    """The result of moving the pages of a journal back to where they were."""
    result = _totals(program, command, placed)
    result.reverted = record
    seen = result.wanted_bytes + sum(
        each.size_bytes for each in result.refused if each.reason == "zero page"
    )
    if placed.look.complete and (absent := journaled_pages * PAGE_BYTES - seen) > 0:
        result.refused = [each for each in result.refused if each.reason != "absent"]
        result.refused.append(RefusedPages(reason="absent", size_bytes=absent))
    return result


def _totals(program: RunningProcess, command: str, placed: Placed) -> PlacementResult:
    total = placed.look.total()
    return PlacementResult(
        pid=program.pid,
        program=command,
        ended=placed.ended,
        complete=placed.look.complete,
        looks=placed.looks,
        attached_s=placed.time_s,
        wanted_bytes=total.wanted,
        placed_bytes=total.placed,
        moved_bytes=sum(placed.moved.values()),
        refused=[
            RefusedPages(reason=reason, size_bytes=size)
            for reason, size in placed.look.refused.most_common()
            if size
        ],
        undone_bytes=placed.undone_bytes,
        moving_settings=[
            MovingSetting(path=each.path, value=each.value, command=each.command)
            for each in moving_settings()
        ],
        children=program.children(),
    )


def _rules(placed: Placed, wanted: AppliedPlan) -> Iterable[RulePlacement]:
    for rule in wanted.applied():
        counts = [
            count for (number, _), count in placed.look.by_range.items() if number == rule.number
        ]
        yield RulePlacement(
            rule=rule.number,
            line=rule.line,
            text=rule.text,
            tier=described(wanted.tiers[rule.tier]),
            region_count=len(counts),
            wanted_bytes=sum(count.wanted for count in counts),
            placed_bytes=sum(count.placed for count in counts),
            moved_bytes=placed.moved[rule.number],
        )


def _regions(placed: Placed) -> list[RegionPlacement]:
    found: dict[int, RegionPlacement] = {}
    for (rule, address), count in placed.look.by_range.items():
        region = placed.regions.get(address)
        if region is None:
            continue
        entry = found.setdefault(
            address,
            RegionPlacement(
                address=f"{address:#x}",
                what=region.words(),
                size_bytes=region.size(),
                wanted_bytes=0,
                placed_bytes=0,
                tiers=[],
            ),
        )
        entry.wanted_bytes += count.wanted
        entry.placed_bytes += count.placed
        tier = placed.look.tiers[rule, address]
        if tier not in entry.tiers:
            entry.tiers.append(tier)
    ranked = sorted(found.values(), key=lambda region: -region.wanted_bytes)
    return ranked[:MAX_REGIONS]
