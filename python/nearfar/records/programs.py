"""Results of the programs of the Seoul thesis: sorts, lattice Boltzmann, matrix multiplication."""

from __future__ import annotations

from pydantic import Field

from nearfar.records.choices import ProgramName
from nearfar.records.figures import FigureModel, Positive, Size


class ProgramRow(FigureModel):
    """One size with one allocator; every run verified its result."""

    program: ProgramName
    n: Size = Field(description="elements, edge of the lattice, or rows of the matrices")
    steps: Size = Field(description="lbm: of the lattice")
    allocator: str
    arrays_bytes: Size = Field(description="of all arrays together")
    time_s: Positive = Field(description="of the computation, wall time")
    cpu_time_s: Positive
    ratio_to_malloc: Positive | None = Field(None, description="of wall times, by epochs")


class ProgramResult(ProgramRow):
    """Section ``program``: the last size of the first allocator; ``rows`` has all rows."""

    checksum: str = Field(description="of the result's bits at that size, alike in all allocators")
    rows: list[ProgramRow] = Field(default_factory=list)
