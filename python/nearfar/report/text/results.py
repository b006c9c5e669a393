"""Tables of the four results. Texts of a record are never read as rich's markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearfar.records.results import (
    BandwidthResult,
    CurveResult,
    LatencyResult,
    MappedResult,
    StreamResult,
)
from nearfar.records.shape import Origin, Shaped
from nearfar.report import headline
from nearfar.report.sections import bandwidth as bandwidth_section
from nearfar.report.sections import latency as latency_section
from nearfar.report.sections import mapped as mapped_section
from nearfar.report.sections import stream as stream_section
from nearfar.report.wording import format_interval, format_quantity, interval_of, origin_of, origins
from nearfar.units import format_size

_RATE = "bandwidth_bytes_per_s"


def latency(result: LatencyResult) -> RenderableType:
    """Latency by region, a column a curve; knees and last cache below."""
    curves = [curve for curve in result.curves if curve.points]
    names = [latency_section.name(result, curve) for curve in curves]
    regions = sorted({point.region_bytes for curve in curves for point in curve.points})
    rows = [
        [
            format_size(region),
            *(_figure(headline.at_region(curve, region), "latency_ns") for curve in curves),
        ]
        for region in regions
    ]
    found = origins((p, "latency_ns") for curve in curves for p in curve.points)
    notes = latency_section.notes(result)
    if result.knees:
        knees = ", ".join(format_size(knee.region_bytes) for knee in result.knees)
        notes.insert(0, f"Knees of the curve: {knees}.")
    table = _table(["Region", *names], rows, 0)
    return _block("Latency of a load", latency_section.finding(result), found, table, notes)


def published_curve(result: CurveResult) -> RenderableType:
    """Knees of a curve that others measured, and the access unit of their medium."""
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
        unit = f"Access unit: {_figure(result, 'access_unit_bytes')}."
    else:
        unit = "Access unit: untold; it takes ntwrite_ns over three blocks or more, small to large."
    found = origins((knee, "region_bytes") for knee in result.knees) or (Origin.MODELLED,)
    return _block(
        f"Knees of {result.source}", finding, found, _table(["Knee", "Between"], rows, 0),
        [unit, *notes],
    )  # fmt: skip


def bandwidth(result: BandwidthResult) -> RenderableType:
    """Bandwidth by kernel, a row a tier, kernel and number of threads."""
    rows = [
        [p.tier, p.kernel, _threads(p.threads, p.oversubscribed), _figure(p, _RATE)]
        for p in result.points
    ]
    found = origins((p, _RATE) for p in result.points)
    table = _table(["Tier", "Kernel", "Threads", "Bandwidth"], rows, 2)
    return _block(
        "Bandwidth", bandwidth_section.finding(result), found, table,
        bandwidth_section.notes(result),
    )  # fmt: skip


def stream(result: StreamResult) -> RenderableType:
    """Best and median rate of the four kernels, for each number of threads."""
    best, median = "best_bandwidth_bytes_per_s", "median_bandwidth_bytes_per_s"
    rows, kernels = [], []
    for run in stream_section.runs(result):
        for kernel, figure in stream_section.kernels(run):
            kernels.append((figure, best))
            threads = _threads(len(run.cpus), run.oversubscribed)
            rows.append([kernel, threads, stream_section.placement(run),
                         _figure(figure, best), _figure(figure, median)])  # fmt: skip
    table = _table(["Kernel", "Threads", "Placement", "Best", "Median"], rows, 3)
    return _block(
        "STREAM", stream_section.finding(result), origins(kernels), table,
        stream_section.notes(result),
    )  # fmt: skip


def mapped(result: MappedResult) -> RenderableType:
    """The mapping's facts, all rates, and the ratios."""
    facts = result.mapping
    about = (
        f"{result.path}: {format_size(result.size_bytes)} on {result.file_system}, descriptor "
        f"{facts.descriptor}, mapped at {facts.first_address:#x}–{facts.last_address:#x}, pages of "
        f"{format_size(facts.page_bytes)} ({format_size(facts.huge_bytes)} on huge pages), "
        f"{'DAX' if facts.dax else 'no DAX'}, {'MAP_SYNC' if facts.map_sync else 'no MAP_SYNC'}."
    )
    rates = [
        [
            mapped_section.CALLS[p.method], f"{p.warmth} {p.pattern} {p.direction}",
            _figure(p, _RATE), _figure(p, "faults_per_gib"),
        ]
        for p in result.points
    ]  # fmt: skip
    ratios = [
        [f"{r.warmth} {r.pattern} {r.direction}", mapped_section.CALLS[r.against],
         _figure(r, "ratio")]
        for r in result.ratios
    ]  # fmt: skip
    found = origins((p, _RATE) for p in result.points)
    tables = Group(
        _table(["Way", "What", "Bandwidth", "Faults per GiB"], rates, 2),
        Text(""),
        _table(["Mapped over", "the call", "Ratio of rates"], ratios, 2),
    )
    notes = [about, *mapped_section.notes(result)]
    return _block("Mapped file", mapped_section.finding(result), found, tables, notes)


def _threads(threads: int, oversubscribed: bool) -> str:
    return f"{threads} (shared)" if oversubscribed else str(threads)


def _figure(shaped: Shaped | None, key: str) -> str:
    """Value, interval, and the origin unless it was measured."""
    if shaped is None or getattr(shaped, key) is None:
        return "–"
    text = format_quantity(key, getattr(shaped, key))
    interval = interval_of(shaped, key)
    if interval:
        text += f"  ({interval})"
    origin = origin_of(shaped, key)
    return text if origin is Origin.MEASURED else f"{text} {origin.value if origin else 'unknown'}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], first_figure: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if index >= first_figure else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _block(
    title: str, finding: str, found: Sequence[Origin], table: RenderableType, notes: Sequence[str]
) -> RenderableType:
    head = Text(title, style="bold").append(
        f"  [{', '.join(origin.value for origin in found) or 'origin not recorded'}]", style="dim"
    )
    return Group(
        head, Text(finding), Text(""), table, Text(""),
        *(Text(f"· {note}", style="dim") for note in notes),
    )  # fmt: skip
