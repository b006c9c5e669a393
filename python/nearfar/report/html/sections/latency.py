"""Load latency by region size: knees of the caches, and the cost of small pages."""

from __future__ import annotations

from nearfar.records.results import LatencyCurve, LatencyResult
from nearfar.report.charts.lines import Axis, Line, Look, Spot, Strip, line_chart
from nearfar.report.charts.palette import series_color
from nearfar.report.html import headline
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.html.sections._published import CAPTION, latency_lines, latency_sources
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

_WHICH = (
    "On huge pages it is the latency of memory alone, which profiles, latency under load and "
    "advise use; on 4 KiB pages a load that misses the TLB also waits for a page walk."
)


def section(context: Context) -> Section | None:
    """Return the section, or None if latency was not measured."""
    result = context.run.sections.latency
    if result is None or headline.main_curve(result) is None:
        return None
    tables = [_latencies(result)]
    if result.knees:
        tables.insert(0, _knees(result))
    return Section(
        "latency",
        "Latency of a load",
        finding(result),
        [_figure(result)],
        tables,
        [*notes(result), *latency_sources()],
    )


def finding(result: LatencyResult) -> str:
    """Summarize the curves in one or two sentences."""
    main = headline.main_curve(result)
    if main is None:
        return "No latency was measured."
    top = headline.largest(main)
    where = f"A load from {format_size(top.region_bytes)}"
    if headline.beyond_cache(result, top):
        where += ", which misses all caches,"
    else:
        where += ", too little to miss all caches,"
    what = f"{plain_tier(main.tier)} with {pages_name(main.pages)}"
    text = f"{where} takes {say(top, 'latency_ns')} on {what}"
    small = headline.small_page_curve(result, main)
    other = headline.at_region(small, top.region_bytes) if small else None
    if other is None:
        return f"{text}."
    more = percent_more(other.latency_ns, top.latency_ns)
    return f"{text}; with 4 KiB pages it takes {say(other, 'latency_ns')}, {more}."


def name(result: LatencyResult, curve: LatencyCurve) -> str:
    """Return the shortest name that distinguishes this curve from the others."""
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
    from nearfar.report.charts.drawing import draw

    curves = [curve for curve in result.curves if curve.points]
    lines = [_line(result, curve, index) for index, curve in enumerate(curves)]
    caption = "Median latency of dependent loads in random order; bands are 95 % intervals."
    if any(line.kind == "emulated" for line in lines):
        caption += " Dashed: emulated, not measured on the memory itself."
    knees = [
        Strip(k.region_bytes, k.low, k.high, format_size(k.region_bytes)) for k in result.knees
    ]
    if knees:
        caption += " Gray strips: knees, the largest region before the latency rises."
    regions = [point.region_bytes for curve in curves for point in curve.points]
    lines += latency_lines(min(regions), max(regions))
    chart = line_chart(
        lines,
        Axis("size of the region that is walked", "sizes"),
        Axis("latency of a load (ns)", "log"),
        Look("band", knees),
    )
    found = origins((p, "latency_ns") for c in curves for p in c.points)
    return draw(f"{caption} {CAPTION}", chart, height=380, narrow_height=280, origins=found)


def _line(result: LatencyResult, curve: LatencyCurve, index: int) -> Line:
    spots = [Spot(p.region_bytes, *p.estimate("latency_ns")) for p in curve.points]
    kind = line_kind(curve.points, "latency_ns")
    return Line(_short(name(result, curve)), series_color(index), spots, kind)


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
        "Capacities of caches, or the reach of a TLB, as measured by the probe",
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
    """State which latency applies where, the last cache, and the CPU of the measurement."""
    source = {
        "knee": "the last knee after which loads take twice as long or longer",
        "reported": "as the system reports it; no knee was found",
        "assumed": "assumed; no knee was found, and the system reports none",
    }[result.effective_last_cache_source]
    size = format_size(result.effective_last_cache_bytes)
    lines = [f"Last-cache size used by the other sections: {size} ({source})."]
    reported = result.reported_last_cache_bytes
    if reported and reported != result.effective_last_cache_bytes:
        lines.append(f"The system reports a last cache of {format_size(reported)}.")
    cpus = sorted({curve.cpu for curve in result.curves})
    lines.append(f"Measured on CPU {', '.join(map(str, cpus))}, one load at a time.")
    main = headline.main_curve(result)
    if main is not None and headline.small_page_curve(result, main) is not None:
        lines.append(_WHICH)
    return lines
