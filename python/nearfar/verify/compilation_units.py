"""Which compilation units of a program cover a code address, from DWARF (5, sections 2.17 and 6.1).

The table of address ranges (``.debug_aranges``) names the unit; GCC writes it, clang does not
unless asked. For addresses that it lacks, each unit's own ranges are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any


def units_of(info: Any, addresses: Iterable[int]) -> Iterator[tuple[Any, list[int]]]:
    """Each unit of the DWARF information that may cover some of the addresses, with these."""
    table = info.get_aranges()
    by_offset: dict[int, list[int]] = defaultdict(list)
    unlisted: list[int] = []
    for address in addresses:
        offset = table.cu_offset_at_addr(address) if table else None
        (unlisted if offset is None else by_offset[offset]).append(address)
    for offset, inside in by_offset.items():
        yield info.get_CU_at(offset), inside
    for unit in info.iter_CUs() if unlisted else ():
        inside = [a for a in unlisted if covers(unit, unit.get_top_DIE(), a) is not False]
        if inside:
            yield unit, inside


def covers(unit: Any, die: Any, address: int) -> bool | None:
    """Whether the code of an entry has the address; None if the entry has no addresses."""
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        end = high.value if high.form == "DW_FORM_addr" else low + high.value
        return bool(low <= address < end)
    if "DW_AT_ranges" in attributes:
        return any(low <= address < high for low, high in _ranges(unit, attributes["DW_AT_ranges"]))
    return None


def _ranges(unit: Any, attribute: Any) -> Iterator[tuple[int, int]]:
    base_attribute = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = base_attribute.value if base_attribute else 0
    lists = unit.dwarfinfo.range_lists()
    for entry in lists.get_range_list_at_offset(attribute.value, cu=unit):
        if hasattr(entry, "base_address"):
            base = entry.base_address
        elif getattr(entry, "is_absolute", False):
            yield entry.begin_offset, entry.end_offset
        else:
            yield base + entry.begin_offset, base + entry.end_offset
