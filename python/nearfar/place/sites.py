"""Allocation sites: the places where a program allocates memory, and their costs."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Site:
    """A call chain that allocates, or memory that a plan cannot move: stack, globals, mappings."""

    number: int
    kind: SiteKind
    frames: tuple[Frame, ...]
    allocations: int
    allocated_bytes: int
    peak_bytes: int
    reads: int
    writes: int
    life_share: float  # of the run that a byte lived

    def is_recorder(self) -> bool:
        """Whether it belongs to the recorder."""
        return self.kind == "statics" and any("libnearfar-trace" in f.path for f in self.frames)

    def is_movable(self) -> bool:
        """Whether a plan can assign it to a tier."""
        return self.kind == "heap" and bool(self.frames) and self.frames[0].is_nameable()
