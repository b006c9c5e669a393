"""Tables of the sections about one tier. Text of a record is never interpreted as rich markup."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.depth import (
    AccessResult,
    BlocksResult,
    LoadedResult,
    ParallelismResult,
    PersistenceResult,
    TailsResult,
)
from nearfar.records.matrix import MatrixResult
from nearfar.report.html.sections import access as access_section
from nearfar.report.html.sections import blocks as blocks_section
from nearfar.report.html.sections import loaded as loaded_section
from nearfar.report.html.sections import matrix as matrix_section
from nearfar.report.html.sections import parallelism as parallelism_section
from nearfar.report.html.sections import persistence as persistence_section
from nearfar.report.html.sections import tails as tails_section
from nearfar.report.terminal.layout import block, columns, figure
from nearfar.report.wording import count, format_quantity, mix_name, origins, percentile
from nearfar.units import LINE_BYTES, format_size

_LATENCY, _RATE, _FENCE = "latency_ns", "bandwidth_bytes_per_s", "fence_ns"

#: Column heads short enough for six columns in 80 characters.
_SHORT = {"reads": "read", "writes": "write", "writes past caches": "ntwrite"}


def parallelism(result: ParallelismResult) -> RenderableType:
    """Time per load, by chains."""
    rows = [[str(p.chains), figure(p, _LATENCY)] for p in result.points]
    return block(
        "Memory-level parallelism",
        parallelism_section.finding(result),
        origins((p, _LATENCY) for p in result.points),
        columns(["Chains", "Time per load"], rows, 0),
        parallelism_section.notes(result),
    )


def blocks(result: BlocksResult) -> RenderableType:
    """Latency of a line by block size."""
    rows = [[format_size(p.block_bytes), figure(p, _LATENCY)] for p in result.points]
    return block(
        "Latency by block size",
        blocks_section.finding(result),
        origins((p, _LATENCY) for p in result.points),
        columns(["Block", "Latency of a line"], rows, 0),
        blocks_section.notes(result),
    )


def tails(result: TailsResult) -> RenderableType:
    """Latency by percentile."""
    rows = [[percentile(p.share), figure(p, _LATENCY)] for p in result.points]
    return block(
        "Single-access latency distribution",
        tails_section.finding(result),
        origins((p, _LATENCY) for p in result.points),
        columns(["Percentile", "Latency"], rows, 1),
        tails_section.notes(result),
    )


def loaded(result: LoadedResult) -> RenderableType:
    """Achieved bandwidth and latency by mix and offered load."""
    rows = [
        [mix_name(*mix), loaded_section.offered_text(p), figure(p, _RATE), figure(p, _LATENCY)]
        for mix, points in loaded_section.by_mix(result).items()
        for p in points
    ]
    return block(
        "Latency under load",
        loaded_section.finding(result),
        origins((p, _LATENCY) for p in result.points),
        columns(["Traffic", "Offered", "Achieved", "Latency"], rows, 1),
        loaded_section.notes(result),
    )


def matrix(result: MatrixResult) -> RenderableType:
    """Latency and bandwidth from the CPUs of each node to the memory of each node."""
    keys = (_LATENCY, "read_bandwidth_bytes_per_s", "write_bandwidth_bytes_per_s")
    rows = [
        [str(p.cpu_node), str(p.memory_node), *(figure(p, key) for key in keys)]
        for p in result.points
    ]
    return block(
        "Memory nodes",
        matrix_section.finding(result),
        origins((p, _LATENCY) for p in result.points),
        columns(matrix_section.COLUMNS, rows, 0),
        matrix_section.notes(result),
    )


def access(result: AccessResult) -> RenderableType:
    """Return medians by pattern and mix, one table per number of threads, and strides."""
    tables: list[RenderableType] = []
    for threads in reversed(access_section.thread_counts(result)):
        tables += [Text(f"GB/s with {count(threads, 'thread')}"), _rates(result, threads), Text("")]
    strides = [[format_size(p.stride_bytes), figure(p, _RATE)] for p in result.strides]
    if strides:
        tables += [columns(["Stride", "Bandwidth of reads"], strides, 0)]
    return block(
        "Bandwidth by mix, order and size",
        access_section.finding(result),
        origins((p, _RATE) for p in [*result.points, *result.strides]),
        Group(*tables),
        [*access_section.notes(result), "The intervals are in the report and in run.json."],
    )


def _rates(result: AccessResult, threads: int) -> RenderableType:
    points, mixes = access_section.lookup(result), access_section.mixes(result)
    rows = []
    for pattern in access_section.patterns(result):
        found = [points.get((threads, pattern, mix)) for mix in mixes]
        rates = [f"{p.bandwidth_bytes_per_s / 1e9:.3g}" if p else "–" for p in found]
        rows.append([access_section.pattern_name(*pattern), *rates])
    names = [mix_name(*mix).removesuffix(" mix") for mix in mixes]
    return columns(["Order, block", *(_SHORT.get(name, name) for name in names)], rows, 1)


def persistence(result: PersistenceResult) -> RenderableType:
    """Return medians by instruction and lines under a fence, and parts of the cost."""
    places = persistence_section.columns(result)
    lines = [place for place in places if place[0] == LINE_BYTES]
    sizes = [place for place in places if place not in lines]
    tables: list[RenderableType] = []
    for some in (lines, sizes):
        tables += [_fences(result, some), Text("")] if some else []
    costs = [[c.how, figure(c, "per_fence_ns"), figure(c, "per_line_ns")] for c in result.costs]
    tables += [columns(["", "Per fence", "Per additional line"], costs, 1)] if costs else []
    return block(
        "Persistence cost",
        persistence_section.finding(result),
        origins((p, _FENCE) for p in result.points),
        Group(*tables),
        persistence_section.notes(result),
    )


def _fences(result: PersistenceResult, places: list[tuple[int, int]]) -> RenderableType:
    points = {(p.how, p.block_bytes, p.blocks_per_fence): p for p in result.points}
    rows = []
    for how in persistence_section.hows(result):
        found = [points.get((how, *place)) for place in places]
        rows.append([how, *(format_quantity(_FENCE, p.fence_ns) if p else "–" for p in found)])
    heads = [persistence_section.column_name(*place) for place in places]
    return columns(["Under a fence", *heads], rows, 1)
