"""Tables of structures in persistent pools."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.pools import IntsetResult, MapResult
from nearfar.records.structures import StructuresResult
from nearfar.report.sections import intset as intset_section
from nearfar.report.sections import maps
from nearfar.report.sections import structures as structures_section
from nearfar.report.text.layout import block, columns
from nearfar.report.wording import format_quantity, origins


def map_run(result: MapResult) -> RenderableType:
    """One operation, a row a size, and what libpmemobj takes beside it."""
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
    """Throughput, a row a medium."""
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
    """Slowdown of each structure, a row a device; the points are in the finding and the report."""
    rows = [
        [d.structure, f"{d.entries:,}", d.device, format_quantity("ratio", d.slowdown)]
        for d in result.devices
    ]
    table = columns(["Structure", "Entries", "Device", "Slowdown"], rows, 3)
    found = origins((one, "slowdown") for one in result.devices)
    section = structures_section
    return block(
        "Structures on memory you do not own", section.finding(result), found, table,
        section.notes(result),
    )  # fmt: skip
