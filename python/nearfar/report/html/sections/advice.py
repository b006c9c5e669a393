"""Placement advice: the curve of slowdown against near memory, the sites, the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nearfar.process.names import program_name
from nearfar.records.advice import AdviceResult, BudgetPoint, FarAdvice
from nearfar.report import advice_words as words
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity, origins, sentence
from nearfar.units import MIB, format_size

if TYPE_CHECKING:
    from nearfar.report.charts.lines import Spot

_POLICIES = {
    "first-touch": "first touch (Linux as it comes)",
    "interleave": "weighted interleave (Linux)",
    "hot-pages": "hot pages promoted, cold ones demoted (Linux tiering)",
    "clock-dwf": "CLOCK-DWF: written pages near",
    "memory-mode": "near as a cache of lines (memory mode)",
}
_PLACED = ("all_near", "all_far", "plan")

_TOUCH = "First touches cost"
#: Heads of the table of sites; without first touches if none costs anything.
SITE_HEADS = [
    "Site",
    "Placed",
    "Size",
    "Loss",
    "Far costs",
    _TOUCH,
    "Life",
    "Reads",
    "Writes",
]


def section(context: Context) -> Section | None:
    """Return the section, or None if there is no advice."""
    result = context.run.sections.advice
    if result is None:
        return None
    tables = [
        *_basis(result),
        _sites(result),
        *_fractions(result),
        *_within(result),
        _placements(result),
        *_expenses(result),
    ]
    return Section(
        "advice",
        f"Advice for {program_name(result.program)}",
        words.finding(result),
        _figures(result),
        tables,
        words.warnings(result),
        words.assumptions(result),
    )


def _figures(result: AdviceResult) -> list[Figure]:
    if not result.movable_bytes:
        return []
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.lines import Axis, Line, Look, Strip, line_chart
    from nearfar.report.charts.palette import series_color

    lines = [
        # "emulated" is the dashed style, which all modeled curves have.
        Line(far.far, series_color(i), _spots(far, result.movable_bytes), "emulated")
        for i, far in enumerate(result.fars)
    ]
    found = origins((point, "slowdown") for far in result.fars for point in far.curve)
    caption = (
        "Slowdown by near memory for what a plan can move, from none to all of it. The "
        f"knee of the curve of {result.far} lies at {format_size(result.knee_bytes)}: more gains "
        "little. The band is the 95 % interval."
    )
    at = result.knee_bytes / MIB
    chart = line_chart(
        lines,
        Axis("near memory (MiB)"),
        Axis("slowdown (×)", least=1.0),
        Look(
            intervals="band",
            strips=[Strip(at, at, at, f"knee {format_size(result.knee_bytes)}")],
            steps=True,
        ),
    )
    return [draw(caption, chart, height=260, narrow_height=220, origins=found)]


def _spots(far: FarAdvice, movable_bytes: int) -> list[Spot]:
    """Return the curve by the memory that each choice keeps near; the last step extends to all
    movable memory."""
    spots = {point.near_bytes: _spot(point, far) for point in reversed(far.curve)}
    if far.curve and movable_bytes > max(spots):
        spots[movable_bytes] = replace(spots[max(spots)], x=movable_bytes / MIB)
    return [spots[near_bytes] for near_bytes in sorted(spots)]


def _spot(point: BudgetPoint, far: FarAdvice) -> Spot:
    """Return a point of the curve. Two points without an interval use that of a placement with the
    same memory near: nothing (``slowdown_movable_far``), or what the plan keeps."""
    from nearfar.report.charts.lines import Spot

    known = point.interval("slowdown")
    if known is None and point.near_budget_bytes == 0:
        known = far.interval("slowdown_movable_far")
    if known is None and point.near_bytes == far.near_bytes:
        known = far.interval("slowdown_plan")
    low, high = known or (point.slowdown, point.slowdown)
    least, value = min(low, point.slowdown), max(point.slowdown, 1.0)
    return Spot(point.near_bytes / MIB, value, max(least, 1.0), max(high, value))


def _placements(result: AdviceResult) -> Table:
    rows = [row for far in result.fars for row in (*_whole_rows(result, far), *_policy_rows(far))]
    heads = ["Far memory", "Placement", "Slowdown", "Time"]
    title = "Placements"
    if any(far.policies for far in result.fars):
        heads.append("Pages moved")
        title += ", and what kernels and hardware would do with as much near memory"
    return Table(
        heads,
        [row[: len(heads)] for row in rows],
        title,
        frozenset({2, 3, 4}),
        stacked=True,
    )


def _whole_rows(result: AdviceResult, far: FarAdvice) -> list[list[Cell]]:
    return [
        [
            Cell(far.far, code=True),
            Cell(placement),
            figure_cell(far, f"slowdown_{key}"),
            figure_cell(far, f"time_{key}_s"),
            Cell("–"),
        ]
        for key, placement in words.whole_placements(result).items()
    ]


def _policy_rows(far: FarAdvice) -> list[list[Cell]]:
    return [
        [
            Cell(far.far, code=True),
            Cell(_POLICIES[policy.policy]),
            figure_cell(policy, "slowdown"),
            figure_cell(policy, "time_s"),
            Cell(f"{policy.moved_pages:,}"),
        ]
        for policy in far.policies
    ]


class Expense(NamedTuple):
    """A row: with all data near, with all far, and with the plan."""

    words: str
    cells: Sequence[str]


def expenses(far: FarAdvice) -> list[Expense]:
    """Return energy, wear and price, as far as they are known; empty if none of them is."""
    if all(each is None for each in (far.energy_plan_J, far.price_plan, far.lifetime_years)):
        return []
    rows = []
    if far.energy_plan_J is not None:
        joules = [
            format_quantity(f"energy_{name}_J", getattr(far, f"energy_{name}_J") or 0.0)
            for name in _PLACED
        ]
        rows.append(Expense("energy of both memories, simulated", joules))
    if far.price_plan is not None:
        prices = [f"{getattr(far, f'price_{name}'):.3g} {far.currency}" for name in _PLACED]
        rows.append(Expense("price of movable memory", prices))
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
    if not rows:
        return []
    return [
        Table(
            ["Far memory", "", "All near", "All far", "Plan"],
            rows,
            "Energy, wear and price",
            frozenset({2, 3, 4}),
            stacked=True,
        )
    ]


def _basis(result: AdviceResult) -> list[Table]:
    """Inputs and assumptions of the answer."""
    rows = [[Cell(text) for text in line.split(": ", 1)] for line in words.basis(result)]
    rows = [row for row in rows if len(row) == 2]
    return [Table(["", ""], rows, "What it stands on", stacked=True)] if rows else []


def _sites(result: AdviceResult) -> Table:
    sites = words.mattering(result)
    rows = [
        [
            Cell(words.site_name(site), "; ".join(site.functions), code=True),
            Cell(words.placing(site)),
            Cell(words.site_size(site)),
            Cell(f"{share:.0%}", bar=round(100 * share)),
            figure_cell(site, "far_time_s"),
            figure_cell(site, "first_touch_s"),
            Cell(f"{site.life_share:.0%}"),
            Cell(f"{site.reads:,}"),
            Cell(f"{site.writes:,}"),
        ]
        for site, share in sites.shown
    ]
    lead = [f"{sentence(sites.rest)}."] if sites.rest else []
    if result.method != "emulated":
        lead.append("Reads and writes are estimates.")
    kept = [i for i, head in enumerate(SITE_HEADS) if head != _TOUCH or _any_touch(result)]
    return Table(
        [SITE_HEADS[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        f"Sites, by what they cost on {result.far}",
        frozenset(range(2, len(kept))),
        lead=" ".join(lead),
        stacked=True,
    )


def _any_touch(result: FarAdvice) -> bool:
    return any(site.first_touch_s for site in result.sites)


def _fractions(result: AdviceResult) -> list[Table]:
    """Sites on both memories, next to whole sites, at the latency under their own load."""
    rows = [
        [
            Cell(far.far, code=True),
            figure_cell(far.fractions, "all_far_slowdown"),
            figure_cell(far.fractions, "whole_sites_slowdown"),
            figure_cell(far.fractions, "slowdown"),
            *(
                Cell(f"{load.utilization:.0%}, {load.latency_ns:.0f} ns")
                for load in (far.fractions.near_load, far.fractions.far_load)
            ),
            Cell("yes" if far.fractions.applied else "no: saves less than 1 %"),
        ]
        for far in result.fars
        if far.fractions is not None
    ]
    if not rows:
        return []
    heads = ["Far memory", "All far", "Whole sites", "Sites on both", "Near load", "Far load"]
    return [
        Table(
            [*heads, "In the plan"],
            rows,
            "Slowdown under the program's own load, with sites on one memory or on both",
            frozenset({1, 2, 3, 4, 5}),
            lead="Load: fraction of the bandwidth in use, and the latency at this load, with sites "
            "on both memories.",
            stacked=True,
        )
    ]


def _within(result: AdviceResult) -> list[Table]:
    if not result.movable_bytes:
        return []
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
    heads = ["Far memory", "Within", "Near memory", "Slowdown", "Price"]
    if all(point.price is None for far in result.fars for point in far.within):
        del heads[-1]
    return [
        Table(
            heads,
            [row[: len(heads)] for row in rows],
            "Least near memory within a slowdown",
            frozenset({1, 2, 3, 4}),
            stacked=True,
        )
    ]
