"""Placement advice in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.advice import AdviceResult, BudgetPoint, FarAdvice
from nearfar.report import advice_words as words
from nearfar.report.html.sections import advice as section
from nearfar.report.terminal.layout import block, columns, figure
from nearfar.report.wording import origins
from nearfar.units import format_size

_BAR = 30
#: Least value of a full bar: smaller values are rounding errors of the model.
_LEAST = 0.01


def advice(result: AdviceResult) -> RenderableType:
    """Return the answer, what it stands on, the curve and the sites, then all else."""
    found = origins([(result, "slowdown_plan"), (result, "time_near_s")])
    parts: list[RenderableType] = [Text(line, style="dim") for line in words.basis(result)]
    for far in result.fars:
        named = [Text(""), Text(f"On {far.far}", style="bold")] if len(result.fars) > 1 else []
        curve = [] if not result.movable_bytes else [Text(""), *_curve(far)]
        parts += named
        parts += [*curve, Text(""), *_sites(far)]
    for far in result.fars:
        parts += [Text(""), _bounds(result, far), *_expenses(far)]
    assumed = " ".join(words.assumptions(result))
    notes = [*words.warnings(result), f"Assumptions: {assumed}"]
    title = f"Advice for {' '.join(result.program)}"
    return block(title, words.finding(result), found, Group(*parts), notes)


def _sites(far: FarAdvice) -> list[RenderableType]:
    """Return the sites that make nearly all of the loss, and a line for the others."""
    sites = words.mattering(far)
    keys = ["far_time_s", *(["first_touch_s"] if any(s.first_touch_s for s in far.sites) else [])]
    heads = ["Site", "Placed", "Size", "Loss", *("Far costs", "First touches cost")[: len(keys)]]
    rows = [
        [
            words.site_name(site),
            words.placing(site),
            words.site_size(site),
            f"{share:.0%}",
            *(figure(site, key) for key in keys),
        ]
        for site, share in sites.shown
    ]
    table = [columns(heads, rows, 2)] if rows else [Text("no site loses anything")]
    lines = [line for line in (sites.rest, words.fractions(far)) if line]
    return [*table, *(Text(line, style="dim") for line in lines)]


def _bounds(result: AdviceResult, far: FarAdvice) -> RenderableType:
    rows = [
        [placement, figure(far, f"slowdown_{key}"), figure(far, f"time_{key}_s")]
        for key, placement in words.whole_placements(result).items()
    ]
    rows += [
        [
            f"{policy.policy}, {policy.moved_pages:,} pages moved"
            if policy.moved_pages
            else policy.policy,
            figure(policy, "slowdown"),
            figure(policy, "time_s"),
        ]
        for policy in far.policies
    ]
    return columns([f"On {far.far}", "Slowdown", "Wall time"], rows, 1)


def _expenses(far: FarAdvice) -> list[RenderableType]:
    """Return energy, wear and price, as far as they are known."""
    rows = [[line.words, *line.cells] for line in section.expenses(far)]
    if not rows:
        return []
    return [Text(""), columns(["Other costs", "all near", "all far", "plan"], rows, 1)]


def _different(curve: Sequence[BudgetPoint]) -> Iterator[BudgetPoint]:
    before = -1
    for point in curve:
        if point.near_bytes != before:
            yield point
        before = point.near_bytes


def _curve(far: FarAdvice) -> list[RenderableType]:
    """Return slowdown by near memory, from none to all that is movable, with bars; the knee, the
    plan if it is elsewhere, and plans that interleave sites are marked.

    Budgets that keep the same near as a smaller one are left out.
    """
    lost = max((point.slowdown - 1 for point in far.curve), default=0.0)
    whole = max(lost, _LEAST)
    knee = next((p for p in far.curve if p.near_bytes == far.knee_bytes), None)
    rows = []
    for point in _different(far.curve):
        width = round(_BAR * (point.slowdown - 1) / whole)
        is_plan = point.near_bytes == far.near_bytes != far.knee_bytes
        marks = {"knee": point is knee, "plan": is_plan, "interleaved": point.interleaved}
        mark = "  " + ", ".join(name for name, holds in marks.items() if holds)
        price = "" if point.price is None else f"{point.price:.3g} {far.currency}"
        rows.append(
            [
                format_size(point.near_bytes),
                f"{point.slowdown:.3f}",
                ("█" * max(width, 0) + mark).rstrip(),
                price,
            ]
        )
    all_text = 99  # more than the columns: none of them is a column of figures
    return [columns(["Near memory", "Slowdown", "", ""], rows, all_text)]
