"""Structures: predicted against measured here, and their slowdown on every shipped device."""

from __future__ import annotations

from nearfar.records.shape import Origin
from nearfar.records.structures import DeviceSlowdown, StructurePoint, StructuresResult
from nearfar.report.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import format_quantity
from nearfar.units import format_size

#: Where it stands on the page.
PLACE = 150

_BASELINES = {"twin": "its volatile twin", "same_code": "the same code"}


def section(context: Context) -> Section | None:
    """The section, or None where nothing was predicted."""
    result = context.run.sections.structures
    if result is None:
        return None
    return Section(
        "structures", "Structures on memory you do not own", finding(result),
        [_devices(result), _points(result)], tables(result), notes(result),
    )  # fmt: skip


def finding(result: StructuresResult) -> str:
    """Errors here first, then the devices."""
    text = (
        f"Predicted before they were measured here, {len(result.points)} points were off by "
        f"{result.mean_error:.0%} on average ({result.worst_error:.0%} at worst), and "
        f"{result.covered_points} lay in their intervals."
    )
    if result.devices:
        least = min(result.devices, key=lambda d: d.slowdown)
        most = max(result.devices, key=lambda d: d.slowdown)
        text += (
            f" On shipped devices {_told(least)} is the least slowdown and {_told(most)} the most."
        )
    return text


def _told(one: DeviceSlowdown) -> str:
    return f"{format_quantity('ratio', one.slowdown)} ({one.structure} on {one.device})"


def _devices(result: StructuresResult) -> Figure:
    from nearfar.report.charts import Bar, row_chart
    from nearfar.report.drawing import draw

    bars = [
        Bar(f"{d.structure}, {d.device}", d.structure, *d.estimate("slowdown"),
            format_quantity("ratio", d.slowdown))
        for d in sorted(result.devices, key=lambda d: (d.structure, d.slowdown))
    ]  # fmt: skip
    chart = row_chart(bars, "slowdown against the volatile twin here, logarithmic", log=True)
    return draw(
        f"Each structure ({_sizes(result)} entries) on every shipped device: half of the "
        "operations are updates.", chart,
        height=26 * len(bars), origins=(Origin.MODELLED,),
    )  # fmt: skip


def _sizes(result: StructuresResult) -> str:
    sizes = {d.structure: d.entries for d in result.devices}
    return ", ".join(f"{name}: {entries:,}" for name, entries in sorted(sizes.items()))


def _points(result: StructuresResult) -> Figure:
    from nearfar.report.charts import Bar, row_chart
    from nearfar.report.drawing import draw

    bars = []
    for p in result.points:
        name = f"{p.what}, {p.entries:,}, {p.tier}"
        bars += [
            Bar(f"{name}, predicted", "predicted", *p.estimate("predicted_latency_ns"),
                format_quantity("latency_ns", p.predicted_latency_ns), hollow=True),
            Bar(f"{name}, measured", "measured", *p.estimate("latency_ns"),
                format_quantity("latency_ns", p.latency_ns)),
        ]  # fmt: skip
    chart = row_chart(bars, "time of one operation (ns), logarithmic", log=True)
    return draw(
        "Predicted and measured on this machine.", chart, height=22 * len(bars),
        origins=(Origin.MODELLED, Origin.MEASURED, Origin.EMULATED),
    )  # fmt: skip


def tables(result: StructuresResult) -> list[Table]:
    """Points, then devices, folded."""
    points = [
        [Cell(p.what), Cell(p.tier), Cell(f"{p.entries:,}"),
         figure_cell(p, "predicted_latency_ns"), figure_cell(p, "latency_ns"), _error(p)]
        for p in result.points
    ]  # fmt: skip
    devices = [
        [Cell(d.structure), Cell(f"{d.entries:,}"), Cell(d.device), figure_cell(d, "time_s"),
         figure_cell(d, "slowdown")]
        for d in result.devices
    ]  # fmt: skip
    return [
        Table(["Operation", "Tier", "Entries", "Predicted", "Measured", "Error"], points,
              "Predicted against measured, an operation", frozenset({2, 3, 4, 5})),
        *_published(result),
        Table(["Structure", "Entries", "Device", "An operation", "Slowdown"], devices,
              "On shipped devices", frozenset({1, 3, 4}), folded=True),
    ]  # fmt: skip


def _published(result: StructuresResult) -> list[Table]:
    """Means of a paper beside what is predicted for its machine, which it was never fitted to."""
    rows = [
        [Cell(f"{p.structure} on {p.device}"), Cell(_BASELINES[p.baseline]),
         figure_cell(p, "slowdown"), Cell(format_quantity("ratio", p.published_slowdown)),
         Cell(p.reason)]
        for p in result.published
    ]  # fmt: skip
    if not rows:
        return []
    entries = ", ".join(sorted({f"{p.entries:,}" for p in result.published}))
    return [
        Table(
            ["Structure", "Against, in DRAM", "Predicted", "Published", "Why they differ"], rows,
            "Slowdowns of the WSCAD 2022 paper on PMDK, and ours predicted for its machine",
            frozenset({2, 3}), stacked=True,
            lead=f"Host {result.published_host}; {entries} entries, for the paper tells neither "
            "their number nor what its DRAM baseline was: both readings are shown.",
        )
    ]  # fmt: skip


def _error(point: StructurePoint) -> Cell:
    return Cell(
        f"{point.relative_error:+.0%}",
        "" if point.covered else "outside of the interval",
        tone="" if point.covered else "bad",
    )


def notes(result: StructuresResult) -> list[str]:
    """What stands behind it."""
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
