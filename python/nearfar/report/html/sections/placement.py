"""Pages of a running program, moved to where a plan says."""

from __future__ import annotations

from nearfar.records.placement import PlacementResult
from nearfar.report import placement_words as words
from nearfar.report.html.section import Cell, Context, Section, Table
from nearfar.units import format_size


def section(context: Context) -> Section | None:
    """Return the section, or None if no pages were placed."""
    result = context.run.sections.placement
    if result is None:
        return None
    tables = [table for table in (_refused(result), _rules(result), _regions(result)) if table.rows]
    title = "Pages placed" if result.reverted is None else "Pages moved back"
    return Section(
        "placement", title, words.finding(result), tables=tables, notes=words.notes(result)
    )


def _refused(result: PlacementResult) -> Table:
    rows = [
        [
            Cell(each.reason),
            Cell(format_size(each.size_bytes)),
            Cell(words.REASONS[each.reason]),
        ]
        for each in result.refused
    ]
    return Table(["Not moved", "Memory", "Meaning"], rows, right=frozenset({1}), stacked=True)


def _rules(result: PlacementResult) -> Table:
    rows = [
        [
            Cell(rule.text, detail=f"line {rule.line}", code=True),
            Cell(rule.tier),
            Cell(str(rule.region_count)),
            Cell(format_size(rule.wanted_bytes)),
            Cell(format_size(rule.placed_bytes)),
            Cell(format_size(rule.moved_bytes)),
        ]
        for rule in result.rules
    ]
    heads = ["Rule", "Tier", "Regions", "In memory", "On its tier", "Moved"]
    return Table(heads, rows, "Rules of the plan", frozenset({2, 3, 4, 5}), stacked=True)


def _regions(result: PlacementResult) -> Table:
    rows = [
        [
            Cell(region.what, detail=region.address, code=True),
            Cell(", ".join(region.tiers)),
            Cell(format_size(region.size_bytes)),
            Cell(format_size(region.wanted_bytes)),
            Cell(format_size(region.placed_bytes)),
        ]
        for region in result.regions
    ]
    heads = ["Region", "Tier", "Address space", "In memory", "On its tier"]
    caption = "The largest regions"
    return Table(heads, rows, caption, frozenset({2, 3, 4}), folded=True, stacked=True)
