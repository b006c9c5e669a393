"""What a power cut leaves in the NVDIMM, and what may not be lost.

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

import numpy as np
import numpy.typing as npt

LINE = 64
#: What the numbers of a structure and of an operation mean (``programs/power_cut.cpp``).
STRUCTURES = ("map", "list", "skip_list")
_PUT = 0

Lines = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Extent:
    """Part of the pool's file, and where it lies on its disk; bytes."""

    file: int
    disk: int
    size: int


@dataclass
class Told:
    """What the guest told: where the pool lies, the order of what became durable, operations."""

    extents: list[Extent] = field(default_factory=list)
    durable: dict[int, tuple[int, bytes]] = field(default_factory=dict)  # turn, bytes of a line
    operations: list[list[int]] = field(default_factory=list)  # thread, structure, op, key, value
    unfinished: dict[int, list[int]] = field(default_factory=dict)  # by thread
    acknowledged: int = 0


def read_log(log: bytes) -> Told:
    """The records up to the cut; the last one may be torn, and then it never happened."""
    told = Told()
    for kind, numbers, lines in _records(log):
        if kind == b"X":
            told.extents = [Extent(*numbers[i : i + 3]) for i in range(1, len(numbers), 3)]
        elif kind == b"F":
            for offset, turn, line in lines:
                if turn > told.durable.get(offset, (0, b""))[0]:
                    told.durable[offset] = (turn, line)
        elif kind == b"B":
            told.unfinished[numbers[0]] = numbers
        else:
            told.operations.append(told.unfinished.pop(numbers[0]))
            told.acknowledged += 1
    return told


def _records(log: bytes) -> Iterator[tuple[bytes, list[int], list[tuple[int, int, bytes]]]]:
    at = 0
    while at < len(log):
        kind = log[at : at + 1]
        count = {b"B": 5, b"A": 2}.get(kind, 1)
        if at + 1 + 8 * count > len(log):
            return
        numbers = list(struct.unpack_from(f"<{count}Q", log, at + 1))
        at += 1 + 8 * count
        lines: list[tuple[int, int, bytes]] = []
        more = {b"X": 24, b"F": 16 + LINE}.get(kind, 0) * numbers[0]
        if kind in (b"X", b"F") and at + more > len(log):
            return
        if kind == b"X":
            numbers += struct.unpack_from(f"<{more // 8}Q", log, at)
        if kind == b"F":
            for start in range(at, at + more, 16 + LINE):
                offset, turn = struct.unpack_from("<2Q", log, start)
                lines.append((offset, turn, log[start + 16 : start + 16 + LINE]))
        if kind in (b"X", b"F"):
            at += more
        yield kind, numbers, lines


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
    disk: Disk, before: bytes, told: Told, random: np.random.Generator
) -> tuple[int, int]:
    """Make the cut real: lines that were pending are kept or lost. Returns (pending, lost).

    ``before`` is the pool as it was when the power came on, all of it durable.
    """
    present = disk.read()
    durable = bytearray(before.ljust(len(present), b"\0"))
    for offset, (_, line) in told.durable.items():
        durable[offset : offset + LINE] = line
    pending = np.flatnonzero((_lines(present) != _lines(durable)).any(axis=1))
    lost = [int(i) * LINE for i in pending if random.integers(2)]
    for offset in lost:
        disk.write_line(offset, bytes(durable[offset : offset + LINE]))
    return len(pending), len(lost)


def _lines(pool: bytearray) -> Lines:
    return np.frombuffer(bytes(pool), dtype=np.uint64).reshape(-1, LINE // 8)


Contents = list[dict[int, int]]


def complaints(before: Contents, told: Told, after: Contents) -> list[str]:
    """What is wrong with the contents after the cut; nothing if all that was acknowledged is there.

    An operation that was not acknowledged may have happened or not, and nothing between.
    """
    expected = [dict(contents) for contents in before]
    for operation in told.operations:
        _apply(expected, operation)
    perhaps = {(o[1], o[3]): o for o in told.unfinished.values()}
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


def _apply(contents: Contents, operation: list[int]) -> None:
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
