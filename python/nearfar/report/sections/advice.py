"""Which data stays near: the curve of slowdown against near memory, the sites, the bounds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from nearfar.records.advice import AdviceResult, FarAdvice, SiteAdvice
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity, origins, say
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
_POLICIES = {
    "first-touch": "first touch (Linux as it comes)",
    "interleave": "weighted interleave (Linux)",
    "hot-pages": "hot pages promoted, cold ones demoted (Linux tiering)",
    "clock-dwf": "CLOCK-DWF: written pages near",
    "memory-mode": "near as a cache of lines (memory mode)",
}
_PLACED = ("all_near", "all_far", "plan")


def section(context: Context) -> Section | None:
    """The section, or None where no advice was asked for."""
    result = context.run.sections.advice
    if result is None:
        return None
    tables = [_bounds(result), _sites(result), *_within(result), *_expenses(result)]
    return Section("advice", f"Advice for {result.program[0].rpartition('/')[2]}", finding(result),
                   _figures(result), tables, notes(result))  # fmt: skip


def finding(result: AdviceResult) -> str:
    """What all far costs, and what the plan saves with how much."""
    heap, plan = f"its {format_size(result.heap_bytes)} heap", say(result, "slowdown_plan")
    kept = (
        f"{format_size(result.near_bytes)} of {heap} kept near bring that down to {plan}"
        if result.near_bytes
        else f"the plan keeps nothing of {heap} near, and takes {plan}"
    )
    return (
        f"With all data on {result.far} the program takes {say(result, 'slowdown_all_far')} as "
        f"long as near; {kept}."
    )


def _figures(result: AdviceResult) -> list[Figure]:
    from nearfar.report.drawing import draw
    from nearfar.report.lines import Axis, Line, Spot, line_chart
    from nearfar.report.palette import series_colour

    lines = [
        Line(far.far, series_colour(i), [
            Spot(p.near_budget_bytes / MIB, p.slowdown, p.slowdown, p.slowdown)
            for p in far.curve
        ], "emulated")
        for i, far in enumerate(result.fars)
    ]  # fmt: skip
    found = origins((point, "slowdown") for far in result.fars for point in far.curve)
    caption = (
        "Slowdown by how much near memory the heap may have, from none to all that it holds. The "
        f"bend of the first curve lies at {format_size(result.knee_bytes)}: more gains little."
    )
    chart = line_chart(lines, Axis("near memory (MiB)"), Axis("slowdown"))
    return [draw(caption, chart, height=260, narrow_height=220, origins=found)]


def _bounds(result: AdviceResult) -> Table:
    rows = []
    for far in result.fars:
        name = Cell(far.far, code=True)
        rows += [
            [name, Cell(words), figure_cell(far, f"slowdown_{key}"),
             figure_cell(far, f"time_{key}_s"), Cell("–")]
            for key, words in _WHOLES.items()
        ]  # fmt: skip
        rows += [
            [name, Cell(_POLICIES[policy.policy]), figure_cell(policy, "slowdown"),
             figure_cell(policy, "time_s"), Cell(f"{policy.moved_pages:,}")]
            for policy in far.policies
        ]  # fmt: skip
    return Table(["Far memory", "Placement", "Slowdown", "Time", "Pages moved"], rows,
                 "Placements, and what kernels and hardware would do with as much near memory",
                 frozenset({2, 3, 4}), folded=False)  # fmt: skip


class Expense(NamedTuple):
    """A row: with all data near, with all far, and with the plan."""

    words: str
    cells: Sequence[str]


def expenses(far: FarAdvice) -> list[Expense]:
    """Energy, wear and price, of what is known."""
    rows = []
    if far.energy_plan_J is not None:
        joules = [format_quantity(f"energy_{name}_J", getattr(far, f"energy_{name}_J") or 0.0)
                  for name in _PLACED]  # fmt: skip
        rows.append(Expense("energy of both memories, simulated", joules))
    if far.price_plan is not None:
        prices = [f"{getattr(far, f'price_{name}'):.3g} {far.currency}" for name in _PLACED]
        rows.append(Expense("price of memory for the heap", prices))
    rows.append(Expense("lines written to far memory", ("–", "–", f"{far.far_writes:,}")))
    if far.lifetime_years is not None:
        years = f"{far.lifetime_years:.3g} years"
        rows.append(Expense("lifetime of far memory, writes spread evenly", ("–", "–", years)))
    return rows


def _expenses(result: AdviceResult) -> list[Table]:
    rows = [
        [Cell(far.far, code=True), Cell(line.words), *map(Cell, line.cells)]
        for far in result.fars
        for line in expenses(far)
    ]
    return [Table(["Far memory", "", "All near", "All far", "Plan"], rows,
                  "Energy, wear and price", frozenset({2, 3, 4}), folded=False)]  # fmt: skip


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
    told += [f"On {far.far}, {why}." for far in result.fars for why in far.lacking]
    if result.plan:
        told.append(
            f"nearfar run --plan {shlex.quote(result.plan)} --tier far=TIER --check -- "
            f"{shlex.join(result.program)} obeys the plan and holds it to its promise."
        )
    return told
