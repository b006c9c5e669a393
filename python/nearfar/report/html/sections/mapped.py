"""One file through mmap and through pread, pwrite and io_uring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearfar.records.results import MappedPoint, MappedResult
from nearfar.report.html import headline
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_interval, format_quantity, origin_mark, origins, say
from nearfar.units import format_size

if TYPE_CHECKING:
    from nearfar.report.charts.rows import Bar

_KEY = "bandwidth_bytes_per_s"
#: Two methods are equally fast if the entire interval of their ratio is within this of 1.
_AS_FAST = 1.25

#: Names of the record's values.
CALLS = {"mapped": "mapped", "buffered": "pread/pwrite", "direct": "O_DIRECT", "uring": "io_uring"}


def section(context: Context) -> Section | None:
    """Return the section, or None if no file was measured."""
    result = context.run.sections.mapped
    if result is None or not result.points:
        return None
    tables = [_ratios(result)] if result.ratios else []
    tables += [_mapping(result), _points(result)]
    return Section(
        "mapped",
        "File access: mmap and system calls",
        finding(result),
        _figures(result),
        [table for table in tables if table.rows],
        notes(result),
    )


def finding(result: MappedResult) -> str:
    """State the most relevant ratio, and the cost of a page fault."""
    ratio = headline.main_ratio(result)
    if ratio is None:
        return f"Moved: {format_size(result.size_bytes)} of a file on {result.file_system}."
    verdict, span = _verdict(ratio.interval("ratio"))
    what = f"{ratio.warmth} {ratio.pattern} {ratio.direction}s"
    text = (
        f"For {what}, the mapping {verdict} {CALLS[ratio.against]}: "
        f"{say(ratio, 'ratio')} its rate ({span})"
    )
    if result.fault_time_ns is None:
        return f"{text}."
    return f"{text}. A page fault costs {say(result, 'fault_time_ns')}."


def _verdict(interval: tuple[float, float] | None) -> tuple[str, str]:
    """Return the verdict on the mapping, and the interval of the ratio or why there is none."""
    unknown = "may be faster or slower than"
    if interval is None:
        return unknown, "too few repeats to decide"
    low, high = interval
    span = format_interval("ratio", low, high)
    if low > 1:
        return "is faster than", span
    if high < 1:
        return "is slower than", span
    if low >= 1 / _AS_FAST and high <= _AS_FAST:
        return "is as fast as", span
    return unknown, f"{span}: too wide to decide"


def _figures(result: MappedResult) -> list[Figure]:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import padded, row_chart

    panels: dict[tuple[str, str], list[MappedPoint]] = {}
    for point in result.points:
        panels.setdefault((point.direction, point.pattern), []).append(point)
    bars = {panel: [_bar(point) for point in points] for panel, points in panels.items()}
    domain = padded([bar for held in bars.values() for bar in held])
    return [
        draw(
            f"{pattern.capitalize()} {direction}s, blocks of {_blocks(points)}",
            row_chart(
                bars[direction, pattern], "bandwidth (MB/s, logarithmic)", log=True, domain=domain
            ),
            height=26 * len(points),
            half=True,
            origins=origins((p, _KEY) for p in points),
        )
        for (direction, pattern), points in panels.items()
    ]


def _bar(point: MappedPoint) -> Bar:
    from nearfar.report.charts.rows import Bar

    value, low, high = (x / 1e6 for x in point.estimate(_KEY))
    mark = origin_mark(point, _KEY)
    return Bar(
        f"{CALLS[point.method]}, {point.warmth}{mark}",
        "mapped" if point.method == "mapped" else "calls",
        value,
        low,
        high,
        format_quantity(_KEY, point.bandwidth_bytes_per_s),
        bool(mark),
    )


def _blocks(points: Sequence[MappedPoint]) -> str:
    return ", ".join(format_size(size) for size in sorted({p.block_bytes for p in points}))


def _ratios(result: MappedResult) -> Table:
    against = list(dict.fromkeys(ratio.against for ratio in result.ratios))
    cases = dict.fromkeys((r.direction, r.pattern, r.warmth) for r in result.ratios)
    rows = []
    for case in cases:
        found = {r.against: r for r in result.ratios if (r.direction, r.pattern, r.warmth) == case}
        cells = [figure_cell(found[a], "ratio") if a in found else Cell("–") for a in against]
        direction, pattern, warmth = case
        rows.append([Cell(f"{warmth} {pattern} {direction}s"), *cells])
    columns = ["", *(f"against {CALLS[a]}" for a in against)]
    return Table(
        columns,
        rows,
        "Rate of the mapping over that of the call, from pairs (above 1 × the mapping wins)",
        frozenset(range(1, len(columns))),
    )


def _mapping(result: MappedResult) -> Table:
    facts = result.mapping
    yes = {True: "yes", False: "no"}
    rows = [
        [Cell("File"), Cell(result.path, code=True)],
        [Cell("File system"), Cell(result.file_system)],
        [Cell("Size"), Cell(format_size(result.size_bytes))],
        [Cell("Descriptor"), Cell(str(facts.descriptor))],
        [Cell("First address"), Cell(f"{facts.first_address:#x}", code=True)],
        [Cell("Last address"), Cell(f"{facts.last_address:#x}", code=True)],
        [Cell("Page size"), Cell(format_size(facts.page_bytes))],
        [Cell("On huge pages"), Cell(format_size(facts.huge_bytes))],
        [Cell("DAX"), Cell(yes[facts.dax])],
        [Cell("MAP_SYNC"), Cell(yes[facts.map_sync])],
    ]
    return Table(["", ""], rows, "The mapping", folded=True)


def _points(result: MappedResult) -> Table:
    rows = [
        [
            Cell(CALLS[p.method]),
            Cell(f"{p.warmth} {p.pattern} {p.direction}s"),
            Cell(format_size(p.block_bytes)),
            Cell(str(p.queue_depth)),
            figure_cell(p, _KEY),
            figure_cell(p, "faults_per_gib"),
        ]
        for p in result.points
    ]
    return Table(
        ["Way", "What", "Block", "Queue depth", "Bandwidth", "Page faults per GiB"],
        rows,
        "All rates",
        frozenset({2, 3, 4, 5}),
        folded=True,
    )


def notes(result: MappedResult) -> list[str]:
    """Define the terms, and state what was not run."""
    lines = [
        "Every method transfers the same blocks between the file and one private buffer. Writes "
        "include msync (mapped) or fdatasync (calls). Cold: the page cache has nothing of the "
        "file; "
        "warm: it has all; resident: the page tables are filled too."
    ]
    depths = {p.queue_depth for p in result.points if p.method == "uring"}
    if depths:
        lines.append(
            f"io_uring keeps {', '.join(map(str, sorted(depths)))} requests in flight, "
            "the other calls one."
        )
    if result.ratios:
        lines.append(
            "Ratios are medians of those of each epoch; with too few repeats for an interval, they "
            "are ratios of the rates shown."
        )
    if result.mapping.read_ahead_bytes:
        lines.append(
            "Cold, a page fault of the mapping reads up to "
            f"{format_size(result.mapping.read_ahead_bytes)} around the page (read_ahead_kb of the "
            "device): random accesses then move far more than they use. madvise(MADV_RANDOM), "
            "which is not measured here, turns that off."
        )
    return lines
