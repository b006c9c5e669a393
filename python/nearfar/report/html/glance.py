"""The cards in the header: the most important figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearfar.records.figures import FigureModel, Origin
from nearfar.records.run import Run
from nearfar.report.html import headline
from nearfar.report.html.sections.mapped import CALLS
from nearfar.report.wording import (
    count,
    format_quantity,
    interval_of,
    origin_of,
    pages_name,
    plain_tier,
    tier_on_pages,
)
from nearfar.units import format_size

#: Follows the interval in the text of a figure with too few repeats.
TOO_FEW = "too few for an interval"


@dataclass(frozen=True)
class Card:
    """One figure with a label."""

    label: str
    value: str
    #: The 95 % interval, or the reason why there is none; empty if the figure is exact or chosen.
    interval: str
    #: Its conditions.
    context: str
    origin: Origin | None
    #: The section of the record with its details (a field of ``Sections``), which is also the slug
    #: of the section of the page.
    section: str


def _card(label: str, result: FigureModel, key: str, context: str, section: str) -> Card:
    value = format_quantity(key, float(getattr(result, key)))
    return Card(label, value, _interval(result, key), context, origin_of(result, key), section)


def _interval(result: FigureModel, key: str) -> str:
    found = interval_of(result, key)
    if result.interval(key):
        return f"95 %: {found}" if found else ""
    return f"{found}, {TOO_FEW}" if found else "no interval"


def cards(run: Run) -> list[Card]:
    """Return the cards that the record has figures for."""
    return [*_advice(run), *_latency(run), *_bandwidth(run), *_mapped(run)]


def _advice(run: Run) -> Iterator[Card]:
    result = run.sections.advice
    if result is None:
        return
    section = "advice"
    yield _card("Slowdown, all data far", result, "slowdown_all_far", f"on {result.far}", section)
    if not result.movable_bytes:
        return
    whole = f"of {format_size(result.movable_bytes)} of movable memory, by the plan"
    near = format_size(result.near_bytes)
    yield Card("Near memory to keep", near, "", whole, Origin.MODELLED, section)
    kept = f"with {near} of its memory near"
    yield _card("Slowdown with the plan", result, "slowdown_plan", kept, section)


def _latency(run: Run) -> Iterator[Card]:
    result = run.sections.latency
    curve = headline.main_curve(result) if result else None
    if result is None or curve is None:
        return
    point = headline.largest(curve)
    label = "Memory latency" if headline.beyond_cache(result, point) else "Latency, partly in cache"
    pages, region = pages_name(curve.pages), format_size(point.region_bytes)
    where = f"{plain_tier(curve.tier)}, {pages}, {region} region"
    yield _card(label, point, "latency_ns", where, "latency")


def _bandwidth(run: Run) -> Iterator[Card]:
    result = run.sections.bandwidth
    if result is None or not result.points:
        return
    kernel = headline.main_kernel(result)
    cached = ", partly in cache" if result.in_cache else ""
    for point in headline.one_and_all(result.points, kernel):
        if point is not None:
            label = f"Bandwidth, {count(point.threads, 'thread')}"
            where = f"{kernel} on {tier_on_pages(point.tier, point.pages)}{cached}"
            yield _card(label, point, "bandwidth_bytes_per_s", where, "bandwidth")


def _mapped(run: Run) -> Iterator[Card]:
    result = run.sections.mapped
    ratio = headline.main_ratio(result) if result else None
    if ratio is not None:
        where = (
            f"{ratio.warmth} {ratio.pattern} {ratio.direction}s, rate over {CALLS[ratio.against]}"
        )
        yield _card("mmap / system call", ratio, "ratio", where, "mapped")
