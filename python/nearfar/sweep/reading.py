"""Read the figures of a cell from its record, or from the answer of a verb without one."""

from __future__ import annotations

from pathlib import Path

from nearfar.records.answer import read_answer
from nearfar.records.numbers import Quantity, numbers, numbers_of
from nearfar.records.run import Run
from nearfar.records.sweep import SweepFigure
from nearfar.store import ANSWER, read_run

_RECORD = "run.json"
_AGAIN = "remove its folder, and sweep again"


def read_record(folder: Path) -> Run | None:
    """The record of a cell, if its verb writes one."""
    return read_run(folder / _RECORD) if (folder / _RECORD).exists() else None


def read_figures(folder: Path, record: Run | None) -> list[SweepFigure]:
    """All figures of a cell. Raises BadInputError for a damaged result."""
    if record is not None:
        found = [*numbers(record.sections)]
    else:
        found = [*numbers_of(read_answer(folder / ANSWER, _AGAIN), "")]
    return [_figure(each) for each in found if isinstance(each, Quantity)]


def _figure(quantity: Quantity) -> SweepFigure:
    return SweepFigure(
        path=quantity.path,
        key=quantity.key,
        value=quantity.value,
        conditions=dict(quantity.conditions),
        interval=quantity.interval,
        provenance=quantity.provenance,
    )
