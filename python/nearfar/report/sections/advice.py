"""Which data stays near: the curve of slowdown against near memory, the sites, the bounds."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.records.advice import AdviceResult, FarAdvice, SiteAdvice
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import origins, say
from nearfar.units import MIB, format_size

#: Where it stands on the page.
PLACE = 20

#: Sites that are shown; the record has all.
MOST_SITES = 24
_WHOLES = {
    "heap_far": "the heap far, all else near",
    "all_far": "everything far",
    "plan": "with the plan",
}


def section(context: Context) -> Section | None:
    """The section, or None where no advice was asked for."""
    result = context.run.sections.advice
    if result is None:
        return None
    return Section("advice", f"Advice for {result.program[0].rpartition('/')[2]}", finding(result),
                   _figures(result), [_bounds(result), _sites(result), *_within(result)],
                   notes(result))  # fmt: skip


def finding(result: AdviceResult) -> str:
    """What all far costs, and what the plan saves with how much."""
    return (
        f"With all data on {result.far} the program takes {say(result, 'slowdown_all_far')} as "
        f"long as near; {format_size(result.near_bytes)} of its {format_size(result.heap_bytes)} "
        f"heap kept near bring that down to {say(result, 'slowdown_plan')}."
    )


def _figures(result: AdviceResult) -> list[Figure]:
    from nearfar.report.drawing import draw
    from nearfar.report.lines import Axis, Line, Spot, line_chart
    from nearfar.report.palette import series_colour

    lines = [
        Line(far.far, series_colour(i), [
            Spot(p.near_bytes / MIB, p.slowdown, p.slowdown, p.slowdown) for p in far.curve
        ], "emulated")
        for i, far in enumerate(result.fars)
    ]  # fmt: skip
    found = origins((point, "slowdown") for far in result.fars for point in far.curve)
    caption = (
        "Slowdown by how much of the heap is near. The bend of the first curve lies at "
        f"{format_size(result.knee_bytes)}: more near memory gains little."
    )
    chart = line_chart(lines, Axis("near memory (MiB)"), Axis("slowdown"))
    return [draw(caption, chart, height=260, narrow_height=220, origins=found)]


def _bounds(result: AdviceResult) -> Table:
    rows = [
        [Cell(far.far, code=True), Cell(words), figure_cell(far, f"slowdown_{key}"),
         figure_cell(far, f"time_{key}_s")]
        for far in result.fars
        for key, words in _WHOLES.items()
    ]  # fmt: skip
    return Table(["Far memory", "Placement", "Slowdown", "Time"], rows, "Placements",
                 frozenset({2, 3}))  # fmt: skip


def _sites(result: AdviceResult) -> Table:
    rows = [
        [
            Cell(site.at, "; ".join(site.chain[1:]), code=True), Cell(site.verdict),
            Cell(format_size(site.size_bytes)), Cell(f"{site.life_share:.0%}"),
            Cell(f"{site.reads:,}"), Cell(f"{site.writes:,}"), Cell(f"{site.stall_share:.0%}"),
            figure_cell(site, "far_time_s"),
        ]
        for site in shown(result)
    ]  # fmt: skip
    return Table(
        ["Site", "Verdict", "Size", "Life", "Reads", "Writes", "Waiting", "Far costs"], rows,
        f"Sites, by what they cost on {result.far}", frozenset(range(2, 8)), folded=False,
    )  # fmt: skip


def _within(result: AdviceResult) -> list[Table]:
    rows = [
        [Cell(far.far, code=True), Cell(f"{point.within_slowdown:g} ×"),
         Cell(format_size(point.near_bytes)), figure_cell(point, "slowdown"),
         Cell("–" if point.price is None else f"{point.price:.3g} {far.currency}")]
        for far in result.fars
        for point in far.within
    ]  # fmt: skip
    if not rows:
        return []
    return [Table(["Far memory", "Within", "Near memory", "Slowdown", "Price"], rows,
                  "Least near memory within a slowdown", frozenset({1, 2, 3, 4}))]  # fmt: skip


def shown(result: FarAdvice) -> Sequence[SiteAdvice]:
    """The sites that matter most."""
    return result.sites[:MOST_SITES]


def notes(result: AdviceResult) -> list[str]:
    """Where the figures end, and how to use the plan."""
    told = [f"{text[0].upper()}{text[1:]}." for text in (*result.limits, *result.warnings)]
    told.append(
        f"Beside the heap, {format_size(result.fixed_bytes)} of stack, globals and mappings stay "
        "near in every plan; a budget is for the heap."
    )
    if result.lifetime_years is not None:
        told.append(
            f"{result.far} would last {result.lifetime_years:.3g} years of this program, its "
            "writes spread evenly."
        )
    if result.plan:
        told.append(
            f"nearfar run --plan {result.plan} --tier far=TIER --check -- "
            f"{' '.join(result.program)} obeys the plan and holds it to its promise."
        )
    return told
