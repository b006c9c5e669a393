"""Functions of ELF files by their symbol tables, for code without debug information.

A shared library that is stripped keeps the table of the functions that it exports (.dynsym; System
V ABI, gABI 4.1). An address is in a function only if the function's size covers it: between two
exported functions there are others, which have no name.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: A section header of a 64-bit file, and a symbol.
_SECTION, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_SYMTAB, _DYNSYM = 2, 11
_FUNC, _IFUNC = 2, 10
_HEADER_BYTES = 64

#: An operator's name, and a list of parameters.
_OPERATOR = re.compile(r"\boperator(\(\)|\[\]|[^\w\s(]+| \w+)")
_PARAMETERS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True)
class Function:
    """A function and the distance of an address from its start, in bytes."""

    name: str
    offset: int


def functions_at(
    module: Path, addresses: Iterable[int], *, parameters: bool = True
) -> dict[int, Function]:
    """The function of each address, in the module's own addresses, that a symbol covers.

    C++ names are demangled if binutils is installed, with ``parameters`` or without. A file that
    cannot be read, or is damaged, has no functions.
    """
    try:
        symbols = _symbols(module.read_bytes())
    except (OSError, OverflowError, struct.error):
        return {}
    starts = sorted(symbols)
    found: dict[int, Function] = {}
    for address in addresses:
        at = bisect_right(starts, address) - 1
        if at >= 0 and address < starts[at] + symbols[starts[at]][1]:
            found[address] = Function(symbols[starts[at]][0], address - starts[at])
    plain = _demangled({function.name for function in found.values()}, parameters=parameters)
    return {at: Function(plain[each.name], each.offset) for at, each in found.items()}


def without_template_arguments(function: str) -> str:
    """A C++ name without template arguments, which can take several lines."""
    if "operator" in function:
        return function
    plain, depth = "", 0
    for letter in function:
        depth += letter == "<"
        plain += letter if not depth else ""
        depth -= letter == ">"
    return plain or function


def plain_name(function: str) -> str:
    """A C++ name without template arguments, parameters and type of the result."""
    called = _OPERATOR.search(function)
    head = function[: called.start()] if called else function
    head = without_template_arguments(head).replace("(anonymous namespace)", "anonymous")
    while (shorter := _PARAMETERS.sub("", head)) != head:
        head = shorter
    name = head.removesuffix(" const").rpartition(" ")[2].lstrip("*&")
    return name + (called[0] if called else "") or function


def is_library(function: str) -> bool:
    """Whether a function is of the C++ standard library."""
    return plain_name(function).startswith(("std::", "__gnu_cxx::"))


def _symbols(data: bytes) -> dict[int, tuple[str, int]]:
    """Name and size of the functions by their address."""
    if data[:5] != b"\x7fELF\x02" or len(data) < _HEADER_BYTES:
        return {}
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, offset + i * size) for i in range(count)]
    found: dict[int, tuple[str, int]] = {}
    for section in sections:
        _, kind, _, _, start, length, link, _, _, each = section
        if kind in (_SYMTAB, _DYNSYM) and each == _SYMBOL.size and link < count:
            names = data[sections[link][4] : sections[link][4] + sections[link][5]]
            table = data[start : start + length // each * each]
            _add(found, table, names)
    return found


def _add(found: dict[int, tuple[str, int]], table: bytes, names: bytes) -> None:
    for name, info, _, section, address, size in _SYMBOL.iter_unpack(table):
        if info & 15 not in (_FUNC, _IFUNC) or section == 0 or size == 0:
            continue
        end = names.find(b"\0", name)
        text = names[name:end].decode(errors="replace")
        before = found.get(address)
        if text and (before is None or _rank(text) < _rank(before[0])):
            found[address] = text, size


def _rank(name: str) -> tuple[bool, int, str]:
    """Key that sorts the names of a function, the public and short one first: free, not cfree."""
    return name.startswith("_"), len(name), name


def _demangled(names: Iterable[str], *, parameters: bool) -> dict[str, str]:
    """Each name as C++ source has it; unchanged if binutils is missing."""
    known = {name: name for name in names}
    mangled = sorted(name for name in known if name.startswith("_Z"))
    if mangled and (program := shutil.which("c++filt")) is not None:
        command = [program] if parameters else [program, "-p"]
        done = subprocess.run(
            command, input="\n".join(mangled), capture_output=True, text=True, check=False
        )
        known |= zip(mangled, done.stdout.splitlines(), strict=False)
    return known
