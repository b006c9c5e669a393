"""Contents of the NVDIMM after a power cut, and the data that may not be lost.

Killing the emulator alone loses nothing: every store of the guest is already in the host's file.
So the program under test streams what its fences made durable (``programs/cut_log.hpp``), and at
the cut each line that was stored after it was last made durable is, by a coin, kept or put back.
Both are legal on real hardware: a line of the cache may be written back at any moment, whole.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

LINE = 64
#: Names of the numbers of a structure, an operation and a phase (``programs/power_cut.cpp``).
STRUCTURES = ("map", "list", "skip_list")
PHASES = ("", "creation", "growth", "recovery")
_PUT = 0

Lines = npt.NDArray[np.uint64]
Numbers = tuple[int, ...]

#: Records of the log: how many numbers, and the bytes of an entry of those that count entries.
_FORMS = {b"X": (1, 24), b"F": (1, 16 + LINE), b"B": (5, 0), b"A": (2, 0), b"P": (4, 0)}
_STOPS = 2


@dataclass(frozen=True)
class Extent:
    """Part of the pool's file, and where it lies on its disk; bytes."""

    file: int
    disk: int
    size: int


@dataclass
class Reported:
    """Report of the guest: place of the pool, order of durable lines, operations."""

    extents: list[Extent] = field(default_factory=list)
    durable: dict[int, tuple[int, bytes]] = field(default_factory=dict)  # turn, bytes of a line
    operations: list[Numbers] = field(default_factory=list)  # thread, structure, op, key, value
    unfinished: dict[int, Numbers] = field(default_factory=dict)  # by thread
    stopped: str = ""  # the phase in which a thread waits for the cut
    read_bytes: int = 0  # of the log

    @property
    def acknowledged(self) -> int:
        """Number of operations."""
        return len(self.operations)

    def read_on(self, log: Path) -> Self:
        """Take in the records written since the last call; one that is torn waits for its rest.

        At a cut the rest never comes, and the record never happened.
        """
        if not log.exists():
            return self
        with log.open("rb") as file:
            file.seek(self.read_bytes)
            more = file.read()
        begin = self.read_bytes
        for kind, numbers, body, end in _records(more):
            self._take(kind, numbers, body)
            self.read_bytes = begin + end
        return self

    def _take(self, kind: bytes, numbers: Numbers, body: bytes) -> None:
        if kind == b"X":
            self.extents = [Extent(*entry) for entry in struct.iter_unpack("<3Q", body)]
        elif kind == b"F":
            for offset, turn, line in struct.iter_unpack(f"<2Q{LINE}s", body):
                if turn > self.durable.get(offset, (0, b""))[0]:
                    self.durable[offset] = (turn, line)
        elif kind == b"B":
            self.unfinished[numbers[0]] = numbers
        elif kind == b"P":
            if numbers[2] == _STOPS:
                self.stopped = PHASES[numbers[1]]
        else:
            self.operations.append(self.unfinished.pop(numbers[0]))


def _records(log: bytes) -> Iterator[tuple[bytes, Numbers, bytes, int]]:
    """Kind, numbers, for X and F the entries that the first number counts, where it ends."""
    at = 0
    while at < len(log):
        kind = log[at : at + 1]
        count, entry_bytes = _FORMS[kind]
        body = at + 1 + 8 * count
        if body > len(log):
            return
        numbers = struct.unpack_from(f"<{count}Q", log, at + 1)
        at = body + entry_bytes * numbers[0]
        if at > len(log):
            return
        yield kind, numbers, log[body:at], at


@dataclass
class Disk:
    """The pool's file as it lies in the file behind the NVDIMM."""

    nvdimm: Path
    start: int  # of the disk's first byte in that file
    extents: list[Extent]

    def read(self) -> bytearray:
        """The pool's bytes; what is not allocated is zero."""
        pool = bytearray(max((e.file + e.size for e in self.extents), default=0))
        with self.nvdimm.open("rb") as file:
            for extent in self.extents:
                file.seek(self.start + extent.disk)
                pool[extent.file : extent.file + extent.size] = file.read(extent.size)
        return pool

    def write_line(self, offset: int, line: bytes) -> None:
        """Put one line of the pool back."""
        extent = next(e for e in self.extents if e.file <= offset < e.file + e.size)
        with self.nvdimm.open("r+b") as file:
            file.seek(self.start + extent.disk + offset - extent.file)
            file.write(line)


def lose_pending(
    disk: Disk, before: bytes, reported: Reported, random: np.random.Generator
) -> tuple[int, int]:
    """Make the cut real: lines that were pending are kept or lost. Returns (pending, lost).

    ``before`` is the pool as it was when the power came on, all of it durable.
    """
    present = disk.read()
    durable = bytearray(before.ljust(len(present), b"\0"))
    for offset, (_, line) in reported.durable.items():
        durable[offset : offset + LINE] = line
    pending = np.flatnonzero((_lines(present) != _lines(durable)).any(axis=1))
    lost = [int(i) * LINE for i in pending if random.integers(2)]
    for offset in lost:
        disk.write_line(offset, bytes(durable[offset : offset + LINE]))
    return len(pending), len(lost)


def _lines(pool: bytearray) -> Lines:
    return np.frombuffer(bytes(pool), dtype=np.uint64).reshape(-1, LINE // 8)


Contents = list[dict[int, int]]


def complaints(before: Contents, reported: Reported, after: Contents) -> list[str]:
    """Defects of the contents after the cut; none if all that was acknowledged is there.

    An operation that was not acknowledged may have happened or not, and nothing between.
    """
    expected = [dict(contents) for contents in before]
    for operation in reported.operations:
        _apply(expected, operation)
    perhaps = {(o[1], o[3]): o for o in reported.unfinished.values()}
    found = []
    for number, name in enumerate(STRUCTURES):
        for key in expected[number].keys() | after[number].keys():
            want, have = expected[number].get(key), after[number].get(key)
            if want == have:
                continue
            possible = perhaps.get((number, key))
            if possible is not None:
                other = [dict(contents) for contents in expected]
                _apply(other, possible)
                if other[number].get(key) == have:
                    continue
            found.append(f"{name}: key {key} has {have}, and {want} was acknowledged")
    return found


def _apply(contents: Contents, operation: Numbers) -> None:
    _, structure, kind, key, value = operation
    if kind == _PUT:
        contents[structure][key] = value if structure == 0 else 0
    else:
        contents[structure].pop(key, None)


def read_contents(text: str) -> Contents:
    """The output of ``power_cut check``."""
    contents: Contents = [{} for _ in STRUCTURES]
    for line in text.splitlines():
        structure, key, value = map(int, line.split())
        contents[structure][key] = value
    return contents
