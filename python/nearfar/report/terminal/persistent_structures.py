"""Tables of structures in persistent pools."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.persistent_structures import IntsetResult, MapResult
from nearfar.records.structures import StructuresResult
from nearfar.report.html.sections import intset as intset_section
from nearfar.report.html.sections import maps
from nearfar.report.html.sections import structures as structures_section
from nearfar.report.terminal.layout import block, columns
from nearfar.report.wording import format_quantity, origins


def map_run(result: MapResult) -> RenderableType:
    """Return one operation, one row per size, and the time of libpmemobj's primitives."""
    keys = maps.used_columns(result)
    rows = [
        [
            maps.name_of(point),
            *(
                "–" if (value := getattr(point, key)) is None else format_quantity(key, value)
                for key in keys
            ),
        ]
        for point in result.sweep
    ]
    table = columns(["Entries × value", *(maps.COLUMNS[key] for key in keys)], rows, 1)
    parts: list[RenderableType] = [table]
    if result.pmdk:
        costs = [
            [maps.cost_name(c), *(format_quantity(key, getattr(c, key)) for key in maps.COSTS)]
            for c in result.pmdk
        ]
        parts += [Text(""), columns(["libpmemobj", *maps.COSTS.values()], costs, 1)]
    if maps.counted(result):
        heads, counters = maps.counters(result)
        parts += [Text(""), Text(f"{maps.COUNTERS}:"), columns(heads, counters, 2)]
    found = origins((point, "latency_ns") for point in result.sweep)
    return block(
        "Persistent hash map", maps.finding(result), found, Group(*parts), maps.notes(result)
    )


def intset(result: IntsetResult) -> RenderableType:
    """Return throughput, one row per medium."""
    section = intset_section
    rows = [
        [
            section.structure_name(structure.structure),
            section.MEDIA[one.medium],
            *(format_quantity(key, getattr(one, key)) for key in section.COLUMNS),
        ]
        for structure in section.together(result)
        for one in structure.series
    ]
    table = columns(["Structure", "Medium", *section.COLUMNS.values()], rows, 2)
    found = origins((one, "ops_per_s") for one in result.series)
    return block("Set of integers", section.finding(result), found, table, section.notes(result))


def predicted_structures(result: StructuresResult) -> RenderableType:
    """Return the slowdown of each structure, one row per device; the report has the points."""
    rows = [
        [d.structure, f"{d.entries:,}", d.device, format_quantity("ratio", d.slowdown)]
        for d in result.devices
    ]
    table = columns(["Structure", "Entries", "Device", "Slowdown"], rows, 3)
    found = origins((one, "slowdown") for one in result.devices)
    section = structures_section
    return block(
        "Structures on memory of other machines",
        section.finding(result),
        found,
        table,
        section.notes(result),
    )
