"""Sites: the places in a program that its memory comes from, and what each costs where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["unknown", "heap", "stack", "statics", "mapping", "code"]


@dataclass(frozen=True)
class Frame:
    """A return address: the object file it lies in, and where in it (``addr2line`` takes that)."""

    path: str
    build_id: str
    offset: int

    def in_plan(self) -> str:
        """As docs/formats/plan.md has it."""
        name = self.build_id or f"name:{self.path.rpartition('/')[2]}"
        return f"{name}+{self.offset:#x}"

    def place(self) -> str:
        """As messages have it: MODULE+0xOFFSET."""
        return f"{self.path}+{self.offset:#x}"

    def can_be_told(self) -> bool:
        """Whether a plan can name it: it lies in an object file, whose name has no blanks."""
        return bool(self.path) and not set(self.in_plan()) & set(" \t<#")


@dataclass(frozen=True)
class Site:
    """A call chain that allocates, or memory that no plan can move: stack, globals, mappings."""

    number: int
    kind: Kind
    frames: tuple[Frame, ...]
    allocations: int
    allocated_bytes: int
    peak_bytes: int
    reads: int
    writes: int
    life_share: float  # of the run that a byte lived

    def is_recorder(self) -> bool:
        """Whether it is what traces the program."""
        return self.kind == "statics" and any("libnearfar-trace" in f.path for f in self.frames)

    def is_movable(self) -> bool:
        """Whether a plan can say where it goes."""
        return self.kind == "heap" and bool(self.frames) and self.frames[0].can_be_told()
