"""Load latency by region size: the caches' knees, and what small pages add."""

from __future__ import annotations

from nearfar.records.results import LatencyCurve, LatencyResult
from nearfar.report import headline
from nearfar.report.lines import Axis, Line, Look, Spot, line_chart
from nearfar.report.palette import series_colour
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.sections._published import CAPTION, latency_lines, latency_sources
from nearfar.report.wording import (
    format_interval,
    line_kind,
    origins,
    pages_name,
    percent_more,
    plain_tier,
    say,
)
from nearfar.units import format_size

#: Where it stands on the page.
PLACE = 30


def section(context: Context) -> Section | None:
    """The section, or None where latency was not measured."""
    result = context.run.sections.latency
    if result is None or headline.main_curve(result) is None:
        return None
    tables = [_latencies(result)]
    if result.knees:
        tables.insert(0, _knees(result))
    return Section(
        "latency", "Latency of a load", finding(result), [_figure(result)], tables,
        [*notes(result), *latency_sources()],
    )  # fmt: skip


def finding(result: LatencyResult) -> str:
    """One or two sentences out of the curves."""
    main = headline.main_curve(result)
    if main is None:
        return "No latency was measured."
    top = headline.largest(main)
    where = (
        "A load that misses all caches"
        if headline.beyond_cache(result, top)
        else f"A load from {format_size(top.region_bytes)}, too little to miss all caches,"
    )
    what = f"{plain_tier(main.tier)} with {pages_name(main.pages)}"
    text = f"{where} takes {say(top, 'latency_ns')} on {what}"
    small = headline.small_page_curve(result, main)
    other = headline.at_region(small, top.region_bytes) if small else None
    if other is None:
        return f"{text}."
    more = percent_more(other.latency_ns, top.latency_ns)
    return f"{text}; with 4 KiB pages it takes {say(other, 'latency_ns')}, {more}."


def name(result: LatencyResult, curve: LatencyCurve) -> str:
    """The shortest name that tells this curve from the others."""
    parts = []
    if len({plain_tier(c.tier) for c in result.curves}) > 1:
        parts.append(plain_tier(curve.tier))
    parts.append({"4k": "4 KiB pages", "thp": "huge pages"}.get(curve.pages, curve.pages))
    if len({c.block_bytes for c in result.curves}) > 1:
        parts.append(f"{format_size(curve.block_bytes)} blocks")
    return ", ".join(parts)


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def _figure(result: LatencyResult) -> Figure:
    from nearfar.report.drawing import draw

    curves = [curve for curve in result.curves if curve.points]
    lines = [_line(result, curve, index) for index, curve in enumerate(curves)]
    caption = "Median latency of dependent loads in random order; bands are 95 % intervals."
    if any(line.kind == "emulated" for line in lines):
        caption += " Dashed: not measured on the memory it stands for."
    knees = [(knee.region_bytes, knee.low, knee.high) for knee in result.knees]
    if knees:
        caption += " Grey strips: knees, the largest region still on the lower plateau."
    regions = [point.region_bytes for curve in curves for point in curve.points]
    lines += latency_lines(min(regions), max(regions))
    chart = line_chart(
        lines, Axis("size of the region that is walked", "sizes"),
        Axis("latency of a load (ns)", "log"), Look("band", "lower right", knees),
    )  # fmt: skip
    found = origins((p, "latency_ns") for c in curves for p in c.points)
    return draw(f"{caption} {CAPTION}", chart, height=380, narrow_height=280, origins=found)


def _line(result: LatencyResult, curve: LatencyCurve, index: int) -> Line:
    spots = [Spot(p.region_bytes, *p.estimate("latency_ns")) for p in curve.points]
    kind = line_kind(curve.points, "latency_ns")
    return Line(_short(name(result, curve)), series_colour(index), spots, kind)


def _knees(result: LatencyResult) -> Table:
    rows = [
        [
            Cell(format_size(knee.region_bytes)),
            Cell(format_interval("region_bytes", knee.low, knee.high)),
        ]
        for knee in result.knees
    ]
    return Table(
        ["Knee", "Between"],
        rows,
        "Ends of caches, or of what a TLB reaches, seen by the probe",
        frozenset({0, 1}),
    )


def _latencies(result: LatencyResult) -> Table:
    curves = [curve for curve in result.curves if curve.points]
    regions = sorted({point.region_bytes for curve in curves for point in curve.points})
    rows = []
    for region in regions:
        points = [headline.at_region(curve, region) for curve in curves]
        cells = [figure_cell(p, "latency_ns") if p else Cell("–") for p in points]
        rows.append([Cell(format_size(region)), *cells])
    columns = ["Region", *(name(result, curve) for curve in curves)]
    return Table(
        columns, rows, "Latency by region size", frozenset(range(len(columns))), folded=True
    )


def notes(result: LatencyResult) -> list[str]:
    """Last cache, and who walked."""
    source = {
        "knee": "the last knee after which loads take twice as long or longer",
        "reported": "as the system reports it; no knee was found",
        "assumed": "assumed: neither a knee nor a report was there",
    }[result.effective_last_cache_source]
    size = format_size(result.effective_last_cache_bytes)
    told = [f"Last cache that counts for the other sections: {size} ({source})."]
    reported = result.reported_last_cache_bytes
    if reported and reported != result.effective_last_cache_bytes:
        told.append(f"The system reports a last cache of {format_size(reported)}.")
    cpus = sorted({curve.cpu for curve in result.curves})
    told.append(f"Walked by processor {', '.join(map(str, cpus))}, one load at a time.")
    return told
