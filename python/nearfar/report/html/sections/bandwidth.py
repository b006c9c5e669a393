"""Read, write and copy bandwidth by kernel and number of threads."""

from __future__ import annotations

from nearfar.records.results import BandwidthResult
from nearfar.report.html import headline
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.html.sections._threads import IN_CACHE, by_threads
from nearfar.report.wording import count, say, tier_on_pages
from nearfar.units import format_size

_KEY = "bandwidth_bytes_per_s"


def section(context: Context) -> Section | None:
    """Return the section, or None if bandwidth was not measured."""
    result = context.run.sections.bandwidth
    if result is None or not result.points:
        return None
    return Section(
        "bandwidth",
        "Bandwidth by threads",
        finding(result),
        _figures(result),
        [_table(result)],
        notes(result),
    )


def finding(result: BandwidthResult) -> str:
    """Compare one thread with the most threads."""
    kernel = headline.main_kernel(result)
    one, most = headline.one_and_all(result.points, kernel)
    tier = tier_on_pages(result.points[0].tier, result.points[0].pages)
    verb = {"read": "reads", "write": "writes", "copy": "copies"}.get(kernel, f"does {kernel} at")
    if one is None:
        return f"Bandwidth of {tier} by kernel and number of threads."
    text = f"On {tier}, one thread {verb} {say(one, _KEY)}"
    if most is None:
        return f"{text}."
    gain = most.bandwidth_bytes_per_s / one.bandwidth_bytes_per_s
    return (
        f"{text}; {count(most.threads, 'thread')} reach {say(most, _KEY)}, {gain:.2f} times that."
    )


def _figures(result: BandwidthResult) -> list[Figure]:
    tiers = list(dict.fromkeys(point.tier for point in result.points))
    return [
        by_threads(
            [(p.kernel, p.threads, p.oversubscribed, p) for p in result.points if p.tier == tier],
            _KEY,
            f"Median bandwidth on {tier}; bars are 95 % intervals.",
        )
        for tier in tiers
    ]


def _table(result: BandwidthResult) -> Table:
    rows = [
        [
            Cell(point.tier),
            Cell(point.kernel),
            Cell(str(point.threads), "shared CPUs" if point.oversubscribed else ""),
            figure_cell(point, _KEY),
        ]
        for point in result.points
    ]
    return Table(
        ["Tier", "Kernel", "Threads", "Bandwidth"],
        rows,
        "Bandwidth by tier, kernel and threads",
        frozenset({2, 3}),
        folded=True,
    )


def notes(result: BandwidthResult) -> list[str]:
    """State what was transferred and what is not counted."""
    lines = [
        f"Arrays of {format_size(result.size_bytes)} each. ntwrite uses non-temporal stores. Bytes "
        "are those that the kernel names; lines read only because they are stored to are not "
        "counted."
    ]
    if any(point.pages == "4k" for point in result.points):
        lines.append(
            "On 4 KiB pages, page walks and prefetchers that stop at the end of a page slow reads "
            "and writes down; sections on pages=thp have higher figures."
        )
    return [*lines, IN_CACHE] if result.in_cache else lines
