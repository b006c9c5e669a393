"""Bandwidth by mix, order and size of accesses, and strides, which can show interleaving."""

from __future__ import annotations

from nearfar.records.depth import AccessPoint, AccessResult
from nearfar.report.charts.lines import Axis, Line, Spot, line_chart
from nearfar.report.charts.palette import series_color
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell, heated
from nearfar.report.wording import count, line_kind, mix_name, origins, say
from nearfar.units import format_size

_KEY = "bandwidth_bytes_per_s"
_ORDERS = ("sequential", "strided", "random")


def section(context: Context) -> Section | None:
    """Return the section, or None if accesses were not measured."""
    result = context.run.sections.access
    if result is None or not (result.points or result.strides):
        return None
    most = max(thread_counts(result), default=0)
    tables = [_matrix(result, n, folded=n != most) for n in reversed(thread_counts(result))]
    figures = [_strides(result)] if result.strides else []
    return Section(
        "access",
        "Bandwidth by mix, order and size",
        finding(result),
        figures,
        [*tables, _stride_table(result)] if result.strides else tables,
        notes(result),
    )


def thread_counts(result: AccessResult) -> list[int]:
    """Return the measured numbers of threads, ascending."""
    return sorted({point.threads for point in result.points})


def mixes(result: AccessResult) -> list[tuple[int, int, bool]]:
    """Return the mixes of reads and writes: most reads first, non-temporal stores last."""
    found = {(p.reads, p.writes, p.nontemporal) for p in result.points}
    return sorted(found, key=lambda mix: (mix[2], mix[1] / (mix[0] + mix[1])))


def patterns(result: AccessResult) -> list[tuple[str, int, int]]:
    """Return order, block and stride, in the order of a table."""
    found = {(p.order, p.block_bytes, p.stride_bytes) for p in result.points}
    return sorted(found, key=lambda pattern: (_ORDERS.index(pattern[0]), *pattern[1:]))


def pattern_name(order: str, block_bytes: int, stride_bytes: int) -> str:
    """Return ``random, 256 B``, or a stride with its distance."""
    block = format_size(block_bytes)
    return f"{block} every {format_size(stride_bytes)}" if stride_bytes else f"{order}, {block}"


def lookup(result: AccessResult) -> dict[tuple[object, ...], AccessPoint]:
    """Return points by threads, pattern and mix; one stride may complete the mixes."""
    return {
        (p.threads, (p.order, p.block_bytes, p.stride_bytes), (p.reads, p.writes, p.nontemporal)): p
        for p in [*result.strides, *result.points]
    }


def finding(result: AccessResult) -> str:
    """Compare reading in order with reading lines at random, and state the interleaving result."""
    parts = []
    reads = [p for p in result.points if (p.reads, p.writes) == (1, 0)]
    threads = max((p.threads for p in reads), default=0)
    own = {(p.order, p.block_bytes): p for p in reads if p.threads == threads}
    ordered, at_random = own.get(("sequential", 64)), own.get(("random", 64))
    if ordered and at_random:
        parts.append(
            f"With {count(threads, 'thread')} on {result.tier}, lines are read in order at "
            f"{say(ordered, _KEY)} and in a random order at {say(at_random, _KEY)}, "
            f"{at_random.bandwidth_bytes_per_s / ordered.bandwidth_bytes_per_s:.2f} times that."
        )
    if result.strides:
        parts.append(interleaving(result))
    return " ".join(parts) or f"Bandwidth of {result.tier} by mix, order and size."


def interleaving(result: AccessResult) -> str:
    """State what the strides show."""
    if result.interleave_bytes is None:
        return (
            "No stride dips below both of its neighbors: no interleaving of devices is visible. "
            "Rates that fall with the stride show page walks and prefetchers."
        )
    return (
        f"Strides of {format_size(result.interleave_bytes)} deviate: memory seems to be "
        "interleaved at that distance."
    )


def _matrix(result: AccessResult, threads: int, *, folded: bool) -> Table:
    points = lookup(result)
    shown = [p for p in result.points if p.threads == threads]
    least = min(p.bandwidth_bytes_per_s for p in shown)
    most = max(p.bandwidth_bytes_per_s for p in shown)
    rows = []
    for pattern in patterns(result):
        found = [points.get((threads, pattern, mix)) for mix in mixes(result)]
        cells = [
            heated(figure_cell(p, _KEY), p.bandwidth_bytes_per_s, least, most) if p else Cell("–")
            for p in found
        ]
        rows.append([Cell(pattern_name(*pattern)), *cells])
    heads = ["Order, block", *(mix_name(*mix) for mix in mixes(result))]
    return Table(
        heads,
        rows,
        f"Bandwidth with {count(threads, 'thread')} (darker is faster)",
        frozenset(range(1, len(heads))),
        folded=folded,
    )


def _strides(result: AccessResult) -> Figure:
    from nearfar.report.charts.drawing import draw

    spots = [
        Spot(p.stride_bytes, *(value / 1e9 for value in p.estimate(_KEY))) for p in result.strides
    ]
    chart = line_chart(
        [Line(result.tier, series_color(0), spots, line_kind(result.strides, _KEY))],
        Axis("distance between the lines that are read", "sizes"),
        Axis("bandwidth (GB/s)"),
    )
    threads = max(p.threads for p in result.strides)
    caption = (
        f"Lines read at a stride by {count(threads, 'thread')}; bars are 95 % intervals. A dip at "
        "one stride would indicate interleaved devices."
    )
    found = origins((p, _KEY) for p in result.strides)
    return draw(caption, chart, height=220, narrow_height=200, origins=found)


def _stride_table(result: AccessResult) -> Table:
    rows = [[Cell(format_size(p.stride_bytes)), figure_cell(p, _KEY)] for p in result.strides]
    return Table(["Stride", "Bandwidth"], rows, "Reads by stride", frozenset({0, 1}), folded=True)


def notes(result: AccessResult) -> list[str]:
    """Describe what was counted."""
    return [
        f"Independent accesses, each thread on its own slice of {format_size(result.size_bytes)}. "
        "Bytes are those requested: lines read only because they are stored to are not counted."
    ]
