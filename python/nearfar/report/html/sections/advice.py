"""Placement advice: the curve of slowdown against near memory, the sites, the bounds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from nearfar.records.advice import AdviceResult, BudgetPoint, FarAdvice, SiteAdvice
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity, origins, say, sentence
from nearfar.units import MIB, format_size, format_time

if TYPE_CHECKING:
    from nearfar.report.charts.lines import Spot

#: Position on the page.
PLACE = 20

#: Most sites shown; the record has all.
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
#: Thresholds above which the first sentences mention an untraced part of the CPU time, an idle
#: part of the wall time, or a difference of slowdowns.
_LEAST_UNSEEN, _MUCH_IDLE, _SAME = 0.005, 0.1, 0.005
_PLACED = ("all_near", "all_far", "plan")

#: Heads of the table of sites.
SITE_HEADS = [
    "Site",
    "Verdict",
    "Size",
    "Life",
    "Reads",
    "Writes",
    "Stall time",
    "Far costs",
    "First touch",
]


def section(context: Context) -> Section | None:
    """Return the section, or None if there is no advice."""
    result = context.run.sections.advice
    if result is None:
        return None
    tables = [_bounds(result), _sites(result), *_within(result), *_expenses(result)]
    return Section(
        "advice",
        f"Advice for {result.program[0].rpartition('/')[2]}",
        finding(result),
        _figures(result),
        tables,
        notes(result),
    )


def finding(result: AdviceResult) -> str:
    """State the cost of all far, the gain of the plan, and what is near by assumption."""
    said = []
    if result.unseen_share >= _LEAST_UNSEEN:
        said.append(
            f"{result.unseen_share:.0%} of the CPU time was in programs that it started and that "
            "cannot be traced; of the rest:"
        )
    said.append(
        f"With all data on {result.far} the program takes {say(result, 'slowdown_all_far')} the "
        f"CPU time that it takes near; {_kept(result)}."
    )
    busy_s = result.time_near_s if result.cpu_near_s is None else result.cpu_near_s
    idle = 1 - busy_s / result.time_near_s if result.time_near_s else 0.0
    if idle >= _MUCH_IDLE:
        said.append(
            f"It is off the CPU for {idle:.0%} of its wall time, which is "
            f"{say(result, 'time_near_s')} near and {say(result, 'time_all_far_s')} far."
        )
    return " ".join(said)


def _kept(result: AdviceResult) -> str:
    plan, near = say(result, "slowdown_plan"), format_size(result.near_bytes)
    heap = f"{format_size(result.heap_bytes)} heap"
    fixed = format_size(result.fixed_bytes)
    if not result.heap_bytes:
        kept = f"it has no heap that a plan could place: with {fixed}"
    elif not result.near_bytes:
        kept = f"the plan keeps nothing of its {heap} near: with {fixed}"
    else:
        kept = f"with {near} of its {heap} near by the plan, and {fixed}"
    same = abs(result.slowdown_all_far - result.slowdown_plan) < _SAME
    return (
        f"{kept} of stack, globals and mappings near by assumption, it takes "
        f"{'as much' if same else plan}"
    )


def basis(result: AdviceResult) -> str:
    """State the latencies and the cache behind the result; empty if a record lacks them."""
    if result.near_latency_ns is None:
        return ""
    far = ", ".join(
        f"{far.far} {format_time((far.far_latency_ns or 0.0) * 1e-9)}" for far in result.fars
    )
    cache = format_size(result.last_cache_bytes) if result.last_cache_bytes else "none"
    return (
        f"Read latency near: {result.near} {format_time(result.near_latency_ns * 1e-9)}; far: "
        f"{far}. Last cache: {cache}."
    )


def _figures(result: AdviceResult) -> list[Figure]:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.lines import Axis, Line, Look, Strip, line_chart
    from nearfar.report.charts.palette import series_colour

    lines = [
        Line(far.far, series_colour(i), [_spot(p, far) for p in far.curve], "emulated")
        for i, far in enumerate(result.fars)
    ]
    found = origins((point, "slowdown") for far in result.fars for point in far.curve)
    caption = (
        "Slowdown by near memory for the heap, from none to its full size. The "
        f"knee of the curve of {result.far} lies at {format_size(result.knee_bytes)}: more gains "
        "little. Bars are intervals, where known: without near memory, and with the plan."
    )
    at = result.knee_bytes / MIB
    chart = line_chart(
        lines,
        Axis("near memory (MiB)"),
        Axis("slowdown (×)", least=1.0),
        Look(strips=[Strip(at, at, at, f"knee {format_size(result.knee_bytes)}")], steps=True),
    )
    return [draw(caption, chart, height=260, narrow_height=220, origins=found)]


def _spot(point: BudgetPoint, far: FarAdvice) -> Spot:
    """Return a point of the curve; the ends of the plan's choice have their own intervals."""
    from nearfar.report.charts.lines import Spot

    known = point.interval("slowdown")
    if known is None and point.near_budget_bytes == 0:
        known = far.interval("slowdown_heap_far")
    if known is None and point.near_bytes == far.near_bytes:
        known = far.interval("slowdown_plan")
    low, high = known or (point.slowdown, point.slowdown)
    least, value = min(low, point.slowdown), max(point.slowdown, 1.0)
    return Spot(point.near_budget_bytes / MIB, value, max(least, 1.0), max(high, value))


def _bounds(result: AdviceResult) -> Table:
    rows = []
    for far in result.fars:
        name = Cell(far.far, code=True)
        rows += [
            [
                name,
                Cell(words),
                figure_cell(far, f"slowdown_{key}"),
                figure_cell(far, f"time_{key}_s"),
                Cell("–"),
            ]
            for key, words in _WHOLES.items()
        ]
        rows += [
            [
                name,
                Cell(_POLICIES[policy.policy]),
                figure_cell(policy, "slowdown"),
                figure_cell(policy, "time_s"),
                Cell(f"{policy.moved_pages:,}"),
            ]
            for policy in far.policies
        ]
    return Table(
        ["Far memory", "Placement", "Slowdown", "Time", "Pages moved"],
        rows,
        "Placements, and what kernels and hardware would do with as much near memory",
        frozenset({2, 3, 4}),
        stacked=True,
    )


class Expense(NamedTuple):
    """A row: with all data near, with all far, and with the plan."""

    words: str
    cells: Sequence[str]


def expenses(far: FarAdvice) -> list[Expense]:
    """Return energy, wear and price, as far as they are known."""
    rows = []
    if far.energy_plan_J is not None:
        joules = [
            format_quantity(f"energy_{name}_J", getattr(far, f"energy_{name}_J") or 0.0)
            for name in _PLACED
        ]
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
    return [
        Table(
            ["Far memory", "", "All near", "All far", "Plan"],
            rows,
            "Energy, wear and price",
            frozenset({2, 3, 4}),
            stacked=True,
        )
    ]


def _sites(result: AdviceResult) -> Table:
    rows = [
        [
            Cell(site.at, "; ".join(site.functions or site.chain[1:]), code=True),
            Cell(site.verdict),
            Cell(format_size(site.size_bytes)),
            Cell(f"{site.life_share:.0%}"),
            Cell(f"{site.reads:,}"),
            Cell(f"{site.writes:,}"),
            Cell(f"{site.stall_share:.0%}"),
            figure_cell(site, "far_time_s"),
            figure_cell(site, "first_touch_s"),
        ]
        for site in shown(result)
    ]
    title = f"Sites, by what they cost on {result.far}"
    return Table(SITE_HEADS, rows, title, frozenset(range(2, 9)), stacked=True)


def _within(result: AdviceResult) -> list[Table]:
    rows = [
        [
            Cell(far.far, code=True),
            Cell(f"{point.within_slowdown:g} ×"),
            Cell(format_size(point.near_bytes)),
            figure_cell(point, "slowdown"),
            Cell("–" if point.price is None else f"{point.price:.3g} {far.currency}"),
        ]
        for far in result.fars
        for point in far.within
    ]
    if not rows:
        return []
    return [
        Table(
            ["Far memory", "Within", "Near memory", "Slowdown", "Price"],
            rows,
            "Least near memory within a slowdown",
            frozenset({1, 2, 3, 4}),
            stacked=True,
        )
    ]


def shown(result: FarAdvice) -> Sequence[SiteAdvice]:
    """Return the sites with the highest cost."""
    return result.sites[:MOST_SITES]


def notes(result: AdviceResult) -> list[str]:
    """Return the limits of the figures, and how to use the plan."""
    name = result.program[0].rpartition("/")[2]
    lines = [said] if (said := basis(result)) else []
    lines += [
        f"{text if text.startswith((result.program[0], name)) else sentence(text)}."
        for text in (*result.limits, *result.warnings)
    ]
    lines.append(
        f"Besides the heap, {format_size(result.fixed_bytes)} of stack, globals and mappings stay "
        "near in every plan; the near budget is for the heap."
    )
    lines += [f"On {far.far}, {why}." for far in result.fars for why in far.lacking]
    if result.plan:
        lines.append(
            f"nearfar run --plan {shlex.quote(result.plan)} --tier far=TIER --check -- "
            f"{shlex.join(result.program)} applies the plan and verifies its promise."
        )
    return lines
