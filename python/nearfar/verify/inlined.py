"""Calls that the compiler has inlined around a code address, from DWARF (5, section 3.3.8)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nearfar.verify.compilation_units import covers, units_of
from nearfar.verify.linetable import line_program_path


def inline_calls_of(module: Path, addresses: Iterable[int]) -> dict[int, list[str]]:
    """FILE:LINE of the calls that were inlined around each address, outward; nothing where there
    are none."""
    from elftools.common.exceptions import DWARFError, ELFError
    from elftools.elf.elffile import ELFFile

    found: dict[int, list[str]] = {}
    try:
        with module.open("rb") as file:
            elf = ELFFile(file)
            if elf.has_dwarf_info():
                for unit, inside in units_of(elf.get_dwarf_info(), addresses):
                    for address in inside:
                        calls = [_call(unit, die) for die in _inlined(unit, address)]
                        if calls:
                            found[address] = [call for call in reversed(calls) if call]
    except (OSError, ELFError, DWARFError, KeyError, AttributeError):
        pass  # as for lines: without these, the innermost place is shown
    return found


def _inlined(unit: Any, address: int) -> list[Any]:
    """Inlined calls around an address, from the outermost on."""
    top = unit.get_top_DIE()
    if covers(unit, top, address) is False:
        return []
    found = _inlined_below(unit, top, address, ())
    if found is None:
        found = _inlined_below(unit, top, address, _NESTS)
    return found or []


_SCOPES = ("DW_TAG_namespace", "DW_TAG_lexical_block")
#: Entries below which code lies that is not theirs: of a lambda, or of a local class.
_NESTS = (
    "DW_TAG_subprogram",
    "DW_TAG_structure_type",
    "DW_TAG_class_type",
    "DW_TAG_union_type",
)


def _inlined_below(
    unit: Any, parent: Any, address: int, nests: tuple[str, ...]
) -> list[Any] | None:
    """The same within an entry, also below entries of ``nests`` that do not have the address; None
    if no entry below it has it."""
    for die in parent.iter_children():
        has_it = covers(unit, die, address)
        if has_it:
            inner = _inlined_below(unit, die, address, nests) or []
            return [die, *inner] if die.tag == "DW_TAG_inlined_subroutine" else inner
        if (has_it is None and die.tag in _SCOPES) or die.tag in nests:
            inner_or_none = _inlined_below(unit, die, address, nests)
            if inner_or_none is not None:
                return inner_or_none
    return None


def _call(unit: Any, die: Any) -> str:
    """FILE:LINE of an inlined call; empty if the compiler did not write it."""
    attributes = die.attributes
    if "DW_AT_call_file" not in attributes or "DW_AT_call_line" not in attributes:
        return ""
    program = unit.dwarfinfo.line_program_for_CU(unit)
    file = line_program_path(unit, program, attributes["DW_AT_call_file"].value)
    return f"{file}:{attributes['DW_AT_call_line'].value}"
