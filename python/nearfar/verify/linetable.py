"""Source lines from the line tables of DWARF.

binutils 2.40's addr2line names the compiled file for code from headers, so the tables are read here
(DWARF 5, section 6.2; pyelftools).
"""

from __future__ import annotations

from collections.abc import Iterable
from os.path import normpath
from pathlib import Path, PurePosixPath
from typing import Any

from nearfar.verify.compilation_units import units_of


def lines_of(module: Path, addresses: Iterable[int]) -> dict[int, str]:
    """FILE:LINE of each address that a line table of the module covers."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    found: dict[int, str] = {}
    try:
        with module.open("rb") as file:
            elf = ELFFile(file)
            if elf.has_dwarf_info():
                for unit, inside in units_of(elf.get_dwarf_info(), set(addresses)):
                    found.update(_lines_in(unit, sorted(inside)))
    except (OSError, ELFError, KeyError, AttributeError):
        pass  # without lines, a location is printed as an address
    return found


def _lines_in(unit: Any, wanted: list[int]) -> dict[int, str]:
    """The wanted addresses that one compilation unit covers."""
    from bisect import bisect_left

    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return {}
    found: dict[int, str] = {}
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and before.address < state.address:
            first, last = bisect_left(wanted, before.address), bisect_left(wanted, state.address)
            for address in wanted[first:last]:
                found[address] = f"{line_program_path(unit, program, before.file)}:{before.line}"
        before = None if state.end_sequence else state
    return found


def line_program_path(unit: Any, program: Any, number: int) -> str:
    """The path of a file of a line table, which counts from 0 since DWARF 5 and from 1 before."""
    header = program.header
    modern = header.version >= 5
    entry = header.file_entry[number if modern else number - 1]
    folders = [_text(folder) for folder in header.include_directory]
    compiled_in = _text(unit.get_top_DIE().attributes["DW_AT_comp_dir"].value)
    if not modern:
        folders = [compiled_in, *folders]
    # clang names headers by way of its own folder: /usr/bin/../lib/gcc/
    return normpath(PurePosixPath(compiled_in, folders[entry.dir_index], _text(entry.name)))


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
