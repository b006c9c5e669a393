"""Results of a placement of pages, in sentences for the terminal and the report."""

from __future__ import annotations

from nearfar.records.placement import PlacementResult, Refusal
from nearfar.units import format_size, format_time

#: Meaning of each reason, and the next step.
REASONS: dict[Refusal, str] = {
    "busy": "pinned or in use by the kernel, such as buffers of O_DIRECT or RDMA",
    "shared": "mapped by other processes too, such as children; --shared moves them",
    "no memory": "the tier's nodes have no free memory",
    "capacity": "the tier's capacity= is used up",
    "absent": "freed or swapped out meanwhile",
    "zero page": "read but never written: they need no memory",
    "other": "the kernel gave another reason",
}
_ENDINGS = {
    "done": "",
    "time": "The time is over.",
    "interrupted": "Interrupted.",
    "program ended": "The program has ended.",
    "program replaced": "The process runs another program now (exec), to which the plan does not "
    "apply.",
}


def finding(result: PlacementResult) -> str:
    """Where the pages are now, and how the placement ended."""
    name = f"{result.program.rpartition('/')[2]} (process {result.pid})"
    if not result.wanted_bytes:
        return _nothing_found(result, name)
    share = result.placed_bytes / result.wanted_bytes
    if result.reverted is not None:
        where = f"of the moved pages of {name} are where they were before {result.reverted}"
    else:
        where = f"of the memory that the plan places in {name} is on its tier"
    end = _ENDINGS[result.ended]
    part = "" if result.complete else " The first look was not finished."
    return (
        f"{_percent(share)} {where}: {format_size(result.placed_bytes)} of "
        f"{format_size(result.wanted_bytes)}. Moved {format_size(result.moved_bytes)} in "
        f"{format_time(result.attached_s)}. {end}{part}"
    ).rstrip()


def _nothing_found(result: PlacementResult, name: str) -> str:
    """A sentence for a placement that found no page to place."""
    moved = f"Moved {format_size(result.moved_bytes)} in {format_time(result.attached_s)}."
    end = _ENDINGS[result.ended]
    if not result.complete and result.ended == "program ended":
        return f"{name} ended before the first look was finished. {moved}"
    if not result.complete:
        return f"The first look at {name} was not finished. {moved} {end}"
    if result.reverted is not None:
        what = (
            f"None of the pages that moved in {result.reverted} is in memory of {name} now."
            if result.refused
            else f"No page of {name} moved in {result.reverted}: there is nothing to move back."
        )
    else:
        what = f"{name} has no memory that the plan places."
    return f"{what} {moved} {end}".rstrip()


def _percent(share: float) -> str:
    """Never 100 % if a page is missing."""
    return "100 %" if share >= 1 else f"{min(share * 100, 99.9):.1f} %"


def refusals(result: PlacementResult) -> list[str]:
    """Pages that are not on their tier, by reason."""
    return [
        f"not moved: {format_size(each.size_bytes)}: {REASONS[each.reason]}"
        for each in result.refused
    ]


def notes(result: PlacementResult) -> list[str]:
    """Notes on pages that were moved back, rules not applied, and processes not followed."""
    return [*_undone(result), *_unapplied(result), *_children(result)]


def _undone(result: PlacementResult) -> list[str]:
    back = format_size(result.undone_bytes)
    if result.undone_bytes and not result.moving_settings:
        return [
            f"{back} were moved back by something else: no setting of the kernel does that here, "
            "so another program does, such as numad, migratepages or DAMON"
        ]
    if not result.undone_bytes and result.ended == "program ended":
        return []
    what = f"{back} were moved back" if result.undone_bytes else "the kernel may move pages back"
    return [
        f"{what}: {setting.path} is {setting.value}; turn it off with `{setting.command}`"
        for setting in result.moving_settings
    ]


def _unapplied(result: PlacementResult) -> list[str]:
    by_reason: dict[str, int] = {}
    for rule in result.unapplied:
        by_reason[rule.why] = by_reason.get(rule.why, 0) + 1
    return [
        f"not applied: {count} {'rule' if count == 1 else 'rules'} that {why}: requires a library "
        "in the program, as `nearfar run --plan` loads it unless the program is static"
        for why, count in by_reason.items()
    ]


def _children(result: PlacementResult) -> list[str]:
    if not result.children:
        return []
    many = "1 child" if result.children == 1 else f"{result.children} children"
    return [f"{many} of the process not followed: place each by its --pid"]
