"""Pages of a running program, moved to where a plan says."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.placement import PlacementResult
from nearfar.report import placement_words as words
from nearfar.report.terminal.layout import columns
from nearfar.units import format_size

#: Most rows of a table in a terminal.
MAX_ROWS = 30


def page_placement(result: PlacementResult, *, details: bool = False) -> RenderableType:
    """Return where the pages are and why some are not; with ``details`` also rules and regions."""
    head = Text("Pages placed" if result.reverted is None else "Pages moved back", style="bold")
    parts: list[RenderableType] = [head.append("  [counted]", style="not bold dim")]
    parts.append(Text(words.finding(result)))
    parts += [Text(f"· {line}") for line in words.refusals(result)]
    parts += [Text(f"· {line}") for line in words.notes(result)]
    if details and result.rules:
        parts += [Text(""), Text("Rules", style="bold"), _rules(result)]
    if details and result.regions:
        parts += [Text(""), Text("Regions", style="bold"), _regions(result)]
    return Group(*parts)


def _rules(result: PlacementResult) -> RenderableType:
    rows = [
        [
            str(rule.line),
            rule.text.removeprefix("rule "),
            str(rule.region_count),
            format_size(rule.wanted_bytes),
            format_size(rule.placed_bytes),
            format_size(rule.moved_bytes),
        ]
        for rule in result.rules[:MAX_ROWS]
    ]
    heads = ["Line", "Rule", "Regions", "In memory", "On its tier", "Moved"]
    return _cut(columns(heads, rows, 2), len(result.rules))


def _regions(result: PlacementResult) -> RenderableType:
    rows = [
        [
            region.address,
            region.what,
            ", ".join(region.tiers),
            format_size(region.size_bytes),
            format_size(region.wanted_bytes),
            format_size(region.placed_bytes),
        ]
        for region in result.regions[:MAX_ROWS]
    ]
    heads = ["Address", "Region", "Tier", "Size", "In memory", "On its tier"]
    return _cut(columns(heads, rows, 3), len(result.regions))


def _cut(table: RenderableType, total: int) -> RenderableType:
    if total <= MAX_ROWS:
        return table
    return Group(table, Text(f"and {total - MAX_ROWS} more, in the record", style="dim"))
