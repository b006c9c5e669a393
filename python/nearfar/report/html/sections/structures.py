"""Structures: predicted and measured here, and their slowdown on every shipped device."""

from __future__ import annotations

from nearfar.records.figures import Origin
from nearfar.records.structures import DeviceSlowdown, StructurePoint, StructuresResult
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity
from nearfar.units import format_size

_BASELINES = {"twin": "its volatile counterpart", "same_code": "the same code"}


def section(context: Context) -> Section | None:
    """Return the section, or None if nothing was predicted."""
    result = context.run.sections.structures
    if result is None:
        return None
    return Section(
        "structures",
        "Structures on memory of other machines",
        finding(result),
        [_devices(result), _points(result)],
        tables(result),
        notes(result),
    )


def finding(result: StructuresResult) -> str:
    """State the errors on this machine, then the devices."""
    text = (
        f"Predicted before they were measured here, {len(result.points)} points were off by "
        f"{result.mean_error:.0%} on average ({result.worst_error:.0%} at most), and "
        f"{result.covered_points} were within their intervals."
    )
    if result.devices:
        least = min(result.devices, key=lambda d: d.slowdown)
        most = max(result.devices, key=lambda d: d.slowdown)
        ends = f"{_slowdown_text(least)} to {_slowdown_text(most)}"
        text += f" On shipped devices the slowdown is {ends}."
    return text


def _slowdown_text(one: DeviceSlowdown) -> str:
    return f"{format_quantity('ratio', one.slowdown)} ({one.structure} on {one.device})"


def _devices(result: StructuresResult) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    bars = [
        Bar(
            f"{d.structure}, {d.device}",
            d.structure,
            *d.estimate("slowdown"),
            format_quantity("ratio", d.slowdown),
        )
        for d in sorted(result.devices, key=lambda d: (d.structure, d.slowdown))
    ]
    chart = row_chart(bars, "slowdown against the volatile counterpart here, logarithmic", log=True)
    return draw(
        f"Each structure ({_sizes(result)} entries) on every shipped device: half of the "
        "operations are updates.",
        chart,
        height=26 * len(bars),
        origins=(Origin.MODELLED,),
    )


def _sizes(result: StructuresResult) -> str:
    sizes = {d.structure: d.entries for d in result.devices}
    return ", ".join(f"{name}: {entries:,}" for name, entries in sorted(sizes.items()))


def _points(result: StructuresResult) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    bars = []
    for p in result.points:
        name = f"{p.what}, {p.entries:,}, {p.tier}"
        bars += [
            Bar(
                f"{name}, predicted",
                "predicted",
                *p.estimate("predicted_latency_ns"),
                format_quantity("latency_ns", p.predicted_latency_ns),
                hollow=True,
            ),
            Bar(
                f"{name}, measured",
                "measured",
                *p.estimate("latency_ns"),
                format_quantity("latency_ns", p.latency_ns),
            ),
        ]
    chart = row_chart(bars, "time of one operation (ns), logarithmic", log=True)
    return draw(
        "Predicted and measured on this machine.",
        chart,
        height=22 * len(bars),
        origins=(Origin.MODELLED, Origin.MEASURED, Origin.EMULATED),
    )


def tables(result: StructuresResult) -> list[Table]:
    """Return the points, then the devices, folded."""
    return [_points_table(result), *_published(result), _devices_table(result)]


def _points_table(result: StructuresResult) -> Table:
    rows = [
        [
            Cell(p.what),
            Cell(p.tier),
            Cell(f"{p.entries:,}"),
            figure_cell(p, "predicted_latency_ns"),
            figure_cell(p, "latency_ns"),
            _error(p),
        ]
        for p in result.points
    ]
    return Table(
        ["Operation", "Tier", "Entries", "Predicted", "Measured", "Error"],
        rows,
        "Predicted against measured, an operation",
        frozenset({2, 3, 4, 5}),
    )


def _devices_table(result: StructuresResult) -> Table:
    rows = [
        [
            Cell(d.structure),
            Cell(f"{d.entries:,}"),
            Cell(d.device),
            figure_cell(d, "time_s"),
            figure_cell(d, "slowdown"),
        ]
        for d in result.devices
    ]
    return Table(
        ["Structure", "Entries", "Device", "An operation", "Slowdown"],
        rows,
        "On shipped devices",
        frozenset({1, 3, 4}),
        folded=True,
    )


def _published(result: StructuresResult) -> list[Table]:
    """Return published means and predictions for the paper's machine, which were not fitted."""
    rows = [
        [
            Cell(f"{p.structure} on {p.device}"),
            Cell(_BASELINES[p.baseline]),
            figure_cell(p, "slowdown"),
            Cell(format_quantity("ratio", p.published_slowdown)),
            Cell(p.reason),
        ]
        for p in result.published
    ]
    if not rows:
        return []
    entries = ", ".join(sorted({f"{p.entries:,}" for p in result.published}))
    return [
        Table(
            ["Structure", "Against, in DRAM", "Predicted", "Published", "Why they differ"],
            rows,
            "Slowdowns of the WSCAD 2022 paper on PMDK, and nearfar's predictions for its machine",
            frozenset({2, 3}),
            stacked=True,
            lead=f"Host {result.published_host}; {entries} entries, because the paper specifies "
            "neither "
            "their number nor what its DRAM baseline was: both readings are shown.",
        )
    ]


def _error(point: StructurePoint) -> Cell:
    return Cell(
        f"{point.relative_error:+.0%}",
        "" if point.covered else "outside the interval",
        tone="" if point.covered else "bad",
    )


def notes(result: StructuresResult) -> list[str]:
    """State the basis of the predictions."""
    cache = format_size(int(result.effective_last_cache_bytes))
    return [
        f"Predicted at {result.predicted_at}, before any point was measured: software was timed in "
        "cache, loads by the probe; misses are those of the structure's own accesses in a model of "
        f"the caches, whose last one holds {cache} here.",
        "Volatile parts, such as the towers of the skip list, stay in this machine's memory. A "
        "disk's pages are cached there too, and each of its flushes is an msync.",
        "On devices: idle latencies of the profiles, one thread, this machine's software. Profiles "
        "without a read latency are left out, and so is the queue, which no benchmark times.",
    ]
