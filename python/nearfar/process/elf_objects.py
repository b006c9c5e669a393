"""Programs and libraries as files: their build ID, and where their writable data is loaded.

Offsets follow the specification (System V ABI, gABI 4.1); build IDs are notes of type
NT_GNU_BUILD_ID. Files are untrusted: whatever is not such a file is None.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from nearfar.units import PAGE_BYTES

_PT_LOAD, _PT_NOTE = 1, 4
_WRITABLE = 2
_NT_GNU_BUILD_ID = 3
_MAX_HEADERS, _MAX_NOTES = 512, 1 << 16


@dataclass(frozen=True)
class DataSegment:
    """Writable data (.data and .bss): virtual addresses before relocation, and its file offset."""

    begin: int
    end: int
    offset: int


@dataclass(frozen=True)
class ElfObject:
    """``first_page``: virtual address of the page that file offset 0 is loaded at."""

    build_id: str
    first_page: int
    data: tuple[DataSegment, ...]


def read_elf_object(file: Path) -> ElfObject | None:
    """Read a program or library; None if it is not readable, or not a 64-bit ELF file."""
    try:
        with file.open("rb") as stream:
            head = stream.read(64)
            if len(head) < 64 or head[:5] != b"\x7fELF\x02":
                return None
            (offset,) = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            if size != 56 or count > _MAX_HEADERS:
                return None
            stream.seek(offset)
            headers = list(struct.iter_unpack("<IIQQQQQQ", stream.read(size * count)))
            notes = b""
            for kind, _, begin, _, _, length, _, _ in headers:
                if kind == _PT_NOTE and length <= _MAX_NOTES:
                    stream.seek(begin)
                    notes += stream.read(length)
    except (OSError, ValueError, OverflowError, struct.error):
        return None
    loads = [header for header in headers if header[0] == _PT_LOAD]
    first = next((address for _, _, begin, address, *_ in loads if begin < PAGE_BYTES), None)
    if first is None:
        return None
    data = tuple(
        DataSegment(address, address + in_memory, begin)
        for _, flags, begin, address, _, _, in_memory, _ in loads
        if flags & _WRITABLE and in_memory
    )
    return ElfObject(_build_id(notes), first // PAGE_BYTES * PAGE_BYTES, data)


def _build_id(notes: bytes) -> str:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        begin = at + 12 + (name_size + 3) // 4 * 4
        if kind == _NT_GNU_BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0":
            return notes[begin : begin + size].hex()
        at = begin + (size + 3) // 4 * 4
    return ""
