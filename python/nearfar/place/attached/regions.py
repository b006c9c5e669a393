"""Memory of a process in regions: what a rule of a plan can name from outside.

A region is a maximal run of adjacent mappings of one kind. Access bits do not matter: the kernel
splits and merges anonymous memory at will. Writable data of a program or library (.data, .bss) is
one region, whatever the mappings that hold it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nearfar.place.regions import mapped_file
from nearfar.process.elf_objects import ElfObject, read_elf_object
from nearfar.units import PAGE_BYTES

RegionKind = Literal["anonymous", "heap", "name", "file", "globals", "other"]
_DELETED = " (deleted)"


@dataclass(frozen=True)
class ProcessRegion:
    """Addresses from ``start`` to ``end``, the end excluded.

    ``name``: of a named mapping, a file's last component, or the file of globals; ``build_id`` of
    globals; ``is_program``: globals of the program itself.
    """

    start: int
    end: int
    kind: RegionKind
    name: str = ""
    build_id: str = ""
    is_program: bool = False

    def size(self) -> int:
        """Bytes of address space."""
        return self.end - self.start

    def words(self) -> str:
        """The region as a condition of a rule, or its name if no rule can name it."""
        match self.kind:
            case "anonymous" | "heap":
                return f"map={self.kind}"
            case "name":
                return f"map=name:{written_name(self.name)}"
            case "file":
                return f"map=file:{self.name}"
            case "globals":
                return f"globals=name:{self.name}"
        return self.name


def written_name(name: str) -> str:
    """The name of memory as a plan writes it, whose words have no blanks: ``[anon: Go: heap]`` is
    ``Go:_heap``."""
    return name.strip().replace(" ", "_")


@dataclass(frozen=True)
class Mapping:
    """A line of /proc/PID/maps. ``file`` is device and inode, ``(“”, 0)`` without a file."""

    start: int
    end: int
    private: bool
    offset: int
    file: tuple[str, int]
    path: str


#: Finds the program or library that is mapped; None if the file is not one, or not readable.
ObjectOf = Callable[[Mapping], ElfObject | None]


def parse_maps(text: str) -> list[Mapping]:
    """The mappings of /proc/PID/maps, in the order of addresses."""
    found = []
    for line in text.splitlines():
        fields = line.split(None, 5)
        start, end = (int(part, 16) for part in fields[0].split("-"))
        path = fields[5] if len(fields) > 5 else ""
        file = (fields[3], int(fields[4]))
        found.append(Mapping(start, end, fields[1].endswith("p"), int(fields[2], 16), file, path))
    return found


def regions_of(
    mappings: Iterable[Mapping], object_of: ObjectOf, program: str = ""
) -> list[ProcessRegion]:
    """The regions of a process, in the order of addresses. ``program``: the path of its file."""
    mappings = list(mappings)
    data = sorted(_globals(mappings, object_of, program), key=lambda region: region.start)
    merged: list[ProcessRegion] = []
    for piece in _split(mappings, data):
        last = merged[-1] if merged else None
        if (
            last
            and last.end == piece.start
            and replace(piece, start=last.start) == replace(last, end=piece.end)
        ):
            merged[-1] = replace(last, end=piece.end)
        else:
            merged.append(piece)
    return merged


def _split(mappings: Iterable[Mapping], data: list[ProcessRegion]) -> Iterator[ProcessRegion]:
    """Pieces of mappings, each within one region; ``data`` are regions of globals, sorted."""
    first = 0
    for mapping in mappings:
        at = mapping.start
        while first < len(data) and data[first].end <= at:
            first += 1
        for region in data[first:]:
            if region.start >= mapping.end:
                break
            if at < region.start:
                yield _plain(mapping, at, region.start)
                at = region.start
            if at < (end := min(region.end, mapping.end)):
                yield replace(region, start=at, end=end)
                at = end
        if at < mapping.end:
            yield _plain(mapping, at, mapping.end)


def _plain(mapping: Mapping, start: int, end: int) -> ProcessRegion:
    path = mapping.path
    if mapping.file[1] or path.startswith("/"):
        return ProcessRegion(start, end, "file", mapped_file(path))
    if path == "[heap]":
        return ProcessRegion(start, end, "heap")
    if path.startswith("[anon:") and path.endswith("]"):
        return ProcessRegion(start, end, "name", path[len("[anon:") : -1])
    if not path and mapping.private:
        return ProcessRegion(start, end, "anonymous")
    return ProcessRegion(start, end, "other", path)


def _globals(mappings: list[Mapping], object_of: ObjectOf, program: str) -> Iterator[ProcessRegion]:
    """Writable data of each program and library that is mapped from its first page on."""
    parts = {(mapping.file, mapping.start): mapping for mapping in mappings if mapping.private}
    for mapping in mappings:
        if mapping.offset or not mapping.file[1] or not mapping.private:
            continue
        found = object_of(mapping)
        if found is None:
            continue
        for segment in found.data:
            start = (segment.begin // PAGE_BYTES * PAGE_BYTES) - found.first_page + mapping.start
            end = -(-segment.end // PAGE_BYTES) * PAGE_BYTES - found.first_page + mapping.start
            part = parts.get((mapping.file, start))
            if part is None or part.offset != segment.offset // PAGE_BYTES * PAGE_BYTES:
                continue  # a file that is read, not loaded
            yield ProcessRegion(
                start,
                end,
                "globals",
                mapped_file(mapping.path),
                found.build_id,
                bool(program) and mapping.path == program,
            )


class ProcessRegions:
    """Reads the regions of a process. Files of programs are read once."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._objects: dict[tuple[tuple[str, int], str], ElfObject | None] = {}

    def read(self) -> list[ProcessRegion]:
        """The regions now; none if the process has ended. Raises PermissionError."""
        root = Path(f"/proc/{self._pid}")
        try:
            text = (root / "maps").read_text(errors="surrogateescape")
            program = os.readlink(root / "exe")  # noqa: PTH115 - the text, as it is
        except (FileNotFoundError, ProcessLookupError):
            return []
        return regions_of(parse_maps(text), self._object_of, program)

    def _object_of(self, mapping: Mapping) -> ElfObject | None:
        key = (mapping.file, mapping.path)
        if key not in self._objects:
            self._objects[key] = self._read(mapping)
        return self._objects[key]

    def _read(self, mapping: Mapping) -> ElfObject | None:
        root = Path(f"/proc/{self._pid}")
        path = mapping.path.removesuffix(_DELETED).lstrip("/")
        places = (
            root / "root" / path,  # in the process's own file systems
            root / "map_files" / f"{mapping.start:x}-{mapping.end:x}",
            root / "exe",
        )
        for place in places:
            try:
                if place.is_file() and place.stat().st_ino == mapping.file[1]:
                    return read_elf_object(place)
            except OSError:
                continue
        return None
