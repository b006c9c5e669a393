"""Operations on a persistent hash map, timed individually and in a loop."""

from __future__ import annotations

from nearfar.records.counters import FIELDS
from nearfar.records.persistent_structures import MapPoint, MapResult, PmdkCost
from nearfar.report.html.section import Cell, Context, Figure, Section, Table, figure_cell
from nearfar.report.wording import count, format_quantity, origin_mark, origins, say
from nearfar.units import format_size

_NOUNS = {"insert": "insertion", "get": "look-up", "remove": "removal"}
_TYPES = {
    "map": "nearfar's map",
    "dram": "the volatile counterpart",
    "map_atomic": "map_atomic",
    "map_tx": "map_tx",
    "map_rp": "map_rp",
}
_PRIMITIVES = {
    "persist": "8 bytes stored and persisted",
    "tx_1_range": "transaction of 1 range",
    "tx_8_ranges": "transaction of 8 ranges",
    "tx_alloc": "allocate in a transaction",
    "publish_1_word": "1 word published",
    "alloc_publish": "reserve, fill, publish",
    "alloc_free": "allocate and free",
}
#: Key and head of each column of the table of sizes.
COLUMNS = {
    "latency_ns": "In a row",
    "dependent_latency_ns": "Dependent",
    "batched_latency_ns": "Batched",
    "p50_latency_ns": "Median",
    "p99_latency_ns": "p99",
    "worst_cpu_ns": "Worst, CPU",
    "fences_per_op": "Fences",
    "lines_per_op": "Lines",
}
COSTS = {
    "latency_ns": "Time",
    "fences_per_op": "Fences",
    "lines_per_op": "Lines",
    "ratio": "Over this map",
}


COUNTERS = "Counters of the operations alone, an operation"


def section(context: Context) -> Section | None:
    """Return the section, or None if no map was run."""
    result = context.run.sections.map
    if result is None:
        return None
    tables = [_points(result)]
    if result.pmdk:
        tables.append(_costs(result))
    if counted(result):
        heads, rows = counters(result)
        cells = [[Cell(value) for value in row] for row in rows]
        tables.append(Table(heads, cells, COUNTERS, frozenset(range(2, len(heads)))))
    return Section(
        "map", "Persistent hash map", finding(result), [_figure(result)], tables, notes(result)
    )


def finding(result: MapResult) -> str:
    """State the time of an operation, its flushes, and the reference."""
    noun = _NOUNS[result.operation]
    article = "An" if noun[0] in "aeiou" else "A"
    text = (
        f"{article} {noun} in {map_name(result)} took {say(result, 'latency_ns')} at "
        f"{result.operations:,} entries of {format_size(result.value_bytes)}, with "
        f"{result.fences_per_op:.3g} fences and {result.lines_per_op:.3g} lines flushed"
    )
    if result.flush_fence_ns is not None and result.operation != "get":
        text += (
            f": {result.latency_ns / result.flush_fence_ns:.2f} times one clwb and sfence "
            f"({say(result, 'flush_fence_ns')})"
        )
    ours = next((cost for cost in result.pmdk if cost.name == "map_rp"), None)
    if ours is not None:
        text += f"; map_rp, PMDK's algorithm, takes {format_quantity('ratio', ours.ratio)} as long"
    return f"{text}."


def map_name(result: MapResult) -> str:
    """Return the map's name; those after PMDK have volatile counterparts on tier dram."""
    name = _TYPES[result.type]
    return (
        f"{name}'s volatile counterpart" if _after_pmdk(result) and result.tier == "dram" else name
    )


def _after_pmdk(result: MapResult) -> bool:
    return result.type.startswith("map_")


def used_columns(result: MapResult) -> list[str]:
    """Return the keys that any point has."""
    return [key for key in COLUMNS if any(getattr(p, key) is not None for p in result.sweep)]


def name_of(point: MapPoint) -> str:
    """Return entries and bytes of a value."""
    return f"{point.operations:,} × {format_size(point.value_bytes)}"


def cost_name(cost: PmdkCost) -> str:
    """Return the operation in words."""
    return _PRIMITIVES.get(cost.name, f"{cost.name}, the same operation")


def _points(result: MapResult) -> Table:
    keys = used_columns(result)
    rows = [[Cell(name_of(p)), *(figure_cell(p, key) for key in keys)] for p in result.sweep]
    heads = ["Entries × value", *(COLUMNS[key] for key in keys)]
    return Table(heads, rows, "One operation, by size", frozenset(range(1, len(heads))))


def _costs(result: MapResult) -> Table:
    rows = [
        [Cell(cost_name(cost)), *(figure_cell(cost, key) for key in COSTS)] for cost in result.pmdk
    ]
    heads = ["libpmemobj", *COSTS.values()]
    return Table(
        heads, rows, "libpmemobj's primitives, same process and epochs", frozenset({1, 2, 3, 4})
    )


def counted(result: MapResult) -> bool:
    """Whether any point has counters."""
    return any(p.counters is not None for p in result.sweep)


def counters(result: MapResult) -> tuple[list[str], list[list[str]]]:
    """Return heads, and a row for each counter: its value per operation, one column per size.

    Counted values are medians over repeats; simulated values are one run of a model.
    """
    points = [(p, p.counters) for p in result.sweep if p.counters is not None]
    rows = []
    for key in FIELDS:
        values = [getattr(c, key) for _, c in points]
        if all(value is None for value in values):
            continue
        origin = next(c.provenance[key].origin for _, c in points if key in c.provenance)
        texts = [
            "–" if value is None else f"{value / p.operations:.4g}"
            for value, (p, _) in zip(values, points, strict=True)
        ]
        rows.append([key, origin.value, *texts])
    return ["Counter", "Origin", *(name_of(p) for p, _ in points)], rows


def _figure(result: MapResult) -> Figure:
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, row_chart

    key = "latency_ns"
    found = origins((one, key) for one in [*result.sweep, *result.pmdk])

    def bar(name: str, of: str, one: MapPoint | PmdkCost) -> Bar:
        # One origin for all is shown next to the caption.
        mark = origin_mark(one, key) if len(found) > 1 else ""
        return Bar(name + mark, of, *one.estimate(key), format_quantity(key, one.latency_ns))

    bars = [bar(name_of(p), map_name(result), p) for p in result.sweep]
    bars += [bar(cost_name(c), "libpmemobj", c) for c in result.pmdk]
    chart = row_chart(bars, "time of one operation (ns), logarithmic", log=True)
    caption = f"{_NOUNS[result.operation].capitalize()}s in {map_name(result)}."
    return draw(caption, chart, height=max(26 * len(bars), 60), origins=found)


def _missing(result: MapResult) -> dict[str, list[str]]:
    """Return the counters that the last point lacks, by reason."""
    last = result.sweep[-1].counters if result.sweep else None
    reasons: dict[str, list[str]] = {}
    for key, why in (last.missing if last else {}).items():
        reasons.setdefault(why, []).append(key)
    return reasons


def notes(result: MapResult) -> list[str]:
    """State how the map was measured, and the limits of the figures."""
    threads = count(len(result.cpus), "thread")
    lines = [
        f"{threads} on {result.tier}. In a row: a loop without timers. Median, p99 and worst are "
        "of "
        "operations timed individually; the worst is its thread's CPU time."
    ]
    if result.load_time_s is not None:
        lines.append(f"Loading took {say(result, 'load_time_s')} and is not in these figures.")
    if _after_pmdk(result):
        lines.append(
            "Readers share the map's lock and a writer holds it exclusively; operations on "
            "values that "
            "are objects are serialized."
        )
    if _after_pmdk(result) and result.tier != "dram":
        lines.append(
            "Fences and lines are those that libpmemobj requests from libpmem, counted between "
            "the two."
        )
    lines += [f"Not counted: {', '.join(keys)}: {why}." for why, keys in _missing(result).items()]
    if result.alloc:
        lines.append("Values are objects that are neither written nor read, as in pmembench.")
    if result.oversubscribed:
        lines.append("Threads shared CPUs.")
    if result.pool:
        lines.append(f"A pool of {result.operations:,} entries was left in {result.pool}.")
    return lines
