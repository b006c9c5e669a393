"""Sites: where a program's memory comes from, and how a plan names it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nearfar.records.choices import SiteKind


@dataclass(frozen=True)
class Frame:
    """A return address: the object file, and the offset in it (as ``addr2line`` takes it)."""

    path: str
    build_id: str
    offset: int

    def in_plan(self) -> str:
        """The frame in the syntax of docs/formats/plan.md."""
        name = self.build_id or f"name:{self.path.rpartition('/')[2]}"
        return f"{name}+{self.offset:#x}"

    def place(self) -> str:
        """The frame in messages: MODULE+0xOFFSET."""
        return f"{self.path}+{self.offset:#x}"

    def is_nameable(self) -> bool:
        """Whether a plan can name it: it is in an object file whose name has no blanks."""
        return bool(self.path) and not set(self.in_plan()) & set(" \t<#")


#: Libraries that are loaded into observed programs.
_RECORDERS = ("libnearfar-trace", "libnearfar-allocation-log")
#: Memory that is not of the heap is placed from this size on: rules for less are not worth it.
MIN_PLACED_BYTES = 1 << 20

#: Bytes from the beginning of a mapping, or of a file's data, to an end; None: whatever follows.
Part = tuple[int, int | None]
#: The smallest and the largest number of bytes of a block; None: any.
BlockSizes = tuple[int, int | None]


@dataclass(frozen=True)
class Site:
    """A call chain that allocates or maps, data of a file, or memory that only the kernel names.

    ``selector``: how a plan names memory that has no call chain (``map=heap``); empty: not at all.
    ``part``: of a large mapping or a file's data, if its parts are sites of their own;
    ``block_sizes``: the same of blocks that one call allocates.
    """

    number: int
    kind: SiteKind
    frames: tuple[Frame, ...]
    allocations: int
    allocated_bytes: int
    peak_bytes: int
    reads: int
    writes: int
    life_share: float  # of the run that a byte lived
    selector: str = ""
    part: Part | None = None
    block_sizes: BlockSizes | None = None

    def is_recorder(self) -> bool:
        """Whether it belongs to the recorder."""
        return self.kind == "statics" and any(
            Path(frame.path).name.startswith(_RECORDERS) for frame in self.frames
        )

    def is_movable(self) -> bool:
        """Whether a plan can assign it to a tier."""
        if self.kind == "heap":
            return self._has_chain()
        if self.peak_bytes < MIN_PLACED_BYTES or self.is_recorder():
            return False
        return bool(self.selector) or (self.kind == "mapping" and self._has_chain())

    def has_call(self) -> bool:
        """Whether its frames are a call chain, not the file that it is of."""
        return bool(self.frames) and self.frames[0].offset != 0

    def _has_chain(self) -> bool:
        return self.has_call() and self.frames[0].is_nameable()
