"""A sweep: the cells of a grid. Each cell is a verb with flags, and the figures of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.figures import Finite, Provenance
from nearfar.records.noise import NoiseRecord

#: Types of a figure's conditions and of a flag's value.
Scalar = str | int | float | bool


class SweepFigure(BaseModel):
    """One figure of a cell. ``path`` names lists without positions: ``compete/rows``."""

    model_config = ConfigDict(extra="forbid")

    path: str
    key: str
    value: Finite
    conditions: dict[str, Scalar] = Field(default_factory=dict)
    interval: tuple[Finite, Finite] | None = None
    provenance: Provenance | None = None


class SweepCell(BaseModel):
    """One run of one verb: the content of ``cell.json`` in the folder named by its id."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="verb, and a hash of verb, flags, files they name and build")
    verb: str
    flags: list[str] = Field(description="as on a command line")
    varied: dict[str, Scalar] = Field(description="where it lies in its grid")
    status: Literal["finished", "failed"]
    exit_code: int
    message: str = Field(default="", description="why it failed, in its own words")
    started: str
    took_s: float
    machine: str = Field(description="id, or the name of the host where no record says more")
    nearfar_version: str
    noise: NoiseRecord | None = Field(default=None, description="null where nothing is timed")
    figures: list[SweepFigure] = Field(default_factory=list)

    @property
    def command(self) -> str:
        """Return the command line."""
        return " ".join(("nearfar", self.verb, *self.flags))


class SweepResult(BaseModel):
    """All cells that are done, in the order of the suite."""

    model_config = ConfigDict(extra="forbid")

    suite: str
    title: str
    source: str
    planned: int = Field(description="cells of the suite")
    cells: list[SweepCell]

    def finished(self, verb: str) -> list[SweepCell]:
        """Return the cells of a verb that have a result."""
        return [cell for cell in self.cells if cell.verb == verb and cell.status == "finished"]

    def failed(self) -> list[SweepCell]:
        """Return the cells without a result."""
        return [cell for cell in self.cells if cell.status == "failed"]

    def verbs(self) -> list[str]:
        """Return the verbs in the order of the suite."""
        return list(dict.fromkeys(cell.verb for cell in self.cells))


def varied_keys(cells: Sequence[SweepCell]) -> list[str]:
    """Return the keys of the grids in the order of the suite, also those with only one value."""
    return list(dict.fromkeys(key for cell in cells for key in cell.varied))
