"""Tables of latency, bandwidth, STREAM and mapped files in the terminal.

Sentences (findings and notes) come from the sections of the HTML report. Text of a record is never
interpreted as rich markup.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.figures import Origin
from nearfar.records.results import (
    BandwidthResult,
    CurveResult,
    LatencyResult,
    MappedResult,
    StreamResult,
)
from nearfar.report.html import headline
from nearfar.report.html.sections import bandwidth as bandwidth_section
from nearfar.report.html.sections import latency as latency_section
from nearfar.report.html.sections import mapped as mapped_section
from nearfar.report.html.sections import stream as stream_section
from nearfar.report.terminal.layout import block, columns, figure
from nearfar.report.wording import format_interval, origins
from nearfar.units import format_size

_RATE = "bandwidth_bytes_per_s"


def latency(result: LatencyResult) -> RenderableType:
    """Return latency by region, one column per curve; knees and last cache below."""
    curves = [curve for curve in result.curves if curve.points]
    names = [latency_section.name(result, curve) for curve in curves]
    regions = sorted({point.region_bytes for curve in curves for point in curve.points})
    rows = [
        [
            format_size(region),
            *(figure(headline.at_region(curve, region), "latency_ns") for curve in curves),
        ]
        for region in regions
    ]
    found = origins((p, "latency_ns") for curve in curves for p in curve.points)
    notes = latency_section.notes(result)
    if result.knees:
        knees = ", ".join(format_size(knee.region_bytes) for knee in result.knees)
        notes.insert(0, f"Knees of the curve: {knees}.")
    table = columns(["Region", *names], rows, 0)
    return block("Latency of a load", latency_section.finding(result), found, table, notes)


def published_curve(result: CurveResult) -> RenderableType:
    """Return the knees of a published curve, and the access unit of its medium."""
    count = len(result.knees)
    finding = {0: "No knee: the latency stays on one plateau.", 1: "One knee."}.get(
        count, f"{count} knees."
    )
    rows = [
        [format_size(k.region_bytes), format_interval("region_bytes", k.low, k.high)]
        for k in result.knees
    ]
    notes = ["A knee is the largest region before the latency rises."]
    if result.block_bytes:
        notes.append(f"Of the curve with blocks of {format_size(result.block_bytes)}.")
    if result.access_unit_bytes:
        unit = f"Access unit: {figure(result, 'access_unit_bytes')}."
    else:
        unit = "Access unit: unknown; it requires ntwrite_ns over three or more block sizes."
    found = origins((knee, "region_bytes") for knee in result.knees) or (Origin.MODELLED,)
    return block(
        f"Knees of {result.source}",
        finding,
        found,
        columns(["Knee", "Between"], rows, 0),
        [unit, *notes],
    )


def bandwidth(result: BandwidthResult) -> RenderableType:
    """Return bandwidth by kernel, one row per tier, kernel and number of threads."""
    rows = [
        [p.tier, p.kernel, _threads(p.threads, p.oversubscribed), figure(p, _RATE)]
        for p in result.points
    ]
    found = origins((p, _RATE) for p in result.points)
    table = columns(["Tier", "Kernel", "Threads", "Bandwidth"], rows, 2)
    return block(
        "Bandwidth",
        bandwidth_section.finding(result),
        found,
        table,
        bandwidth_section.notes(result),
    )


def stream(result: StreamResult) -> RenderableType:
    """Return median and best rate of the four kernels, for each number of threads."""
    best, median = "best_bandwidth_bytes_per_s", "median_bandwidth_bytes_per_s"
    rows, kernels = [], []
    for run in stream_section.runs(result):
        for kernel, rates in stream_section.kernels(run):
            kernels.append((rates, median))
            threads = _threads(len(run.cpus), run.oversubscribed)
            rows.append(
                [
                    kernel,
                    threads,
                    stream_section.placement(run),
                    figure(rates, median),
                    figure(rates, best),
                ]
            )
    table = columns(["Kernel", "Threads", "Placement", "Median", "Best"], rows, 3)
    return block(
        "STREAM",
        stream_section.finding(result),
        origins(kernels),
        table,
        stream_section.notes(result),
    )


def mapped(result: MappedResult) -> RenderableType:
    """Return the mapping's facts, all rates, and the ratios."""
    rates = [
        [
            mapped_section.CALLS[p.method],
            f"{p.warmth} {p.pattern} {p.direction}",
            figure(p, _RATE),
            figure(p, "faults_per_gib"),
        ]
        for p in result.points
    ]
    ratios = [
        [
            f"{r.warmth} {r.pattern} {r.direction}",
            mapped_section.CALLS[r.against],
            figure(r, "ratio"),
        ]
        for r in result.ratios
    ]
    found = origins((p, _RATE) for p in result.points)
    tables = Group(
        columns(["Method", "Access", "Bandwidth", "Faults per GiB"], rates, 2),
        Text(""),
        columns(["Mapped over", "the call", "Ratio of rates"], ratios, 2),
    )
    notes = [_about_mapping(result), *mapped_section.notes(result)]
    return block("Mapped file", mapped_section.finding(result), found, tables, notes)


def _about_mapping(result: MappedResult) -> str:
    facts = result.mapping
    return (
        f"{result.path}: {format_size(result.size_bytes)} on {result.file_system}, descriptor "
        f"{facts.descriptor}, mapped at {facts.first_address:#x}–{facts.last_address:#x}, pages of "
        f"{format_size(facts.page_bytes)} ({format_size(facts.huge_bytes)} on huge pages), "
        f"{'DAX' if facts.dax else 'no DAX'}, {'MAP_SYNC' if facts.map_sync else 'no MAP_SYNC'}."
    )


def _threads(threads: int, oversubscribed: bool) -> str:
    return f"{threads} (shared)" if oversubscribed else str(threads)
