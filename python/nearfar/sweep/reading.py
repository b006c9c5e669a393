"""What a cell gave, as figures: out of its record, or out of the answer of a verb without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from nearfar.errors import BadInputError
from nearfar.records.run import Run
from nearfar.records.shape import Figures, Observed
from nearfar.records.sweep import SweepFigure
from nearfar.records.walk import Quantity, numbers, numbers_of
from nearfar.store import read_run
from nearfar.sweep.running import ANSWER

_RECORD = "run.json"
_AGAIN = "remove its folder, and sweep again"


class _Facts(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Observation(Observed):
    model_config = ConfigDict(extra="allow")


def read_record(folder: Path) -> Run | None:
    """The record of a cell, where its verb keeps one."""
    return read_run(folder / _RECORD) if (folder / _RECORD).exists() else None


def read_figures(folder: Path, record: Run | None) -> list[SweepFigure]:
    """All figures of a cell. Raises BadInputError for a result that is damaged."""
    if record is not None:
        found = [*numbers(record.sections)]
    else:
        found = [*numbers_of(_modelled(_read_answer(folder / ANSWER)), "")]
    return [_figure(each) for each in found if isinstance(each, Quantity)]


def _read_answer(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"cannot read {file}: {error}", _AGAIN) from None
    if not isinstance(document, dict):
        raise BadInputError(f"{file} is no result", _AGAIN)
    return document


def _modelled(document: dict[str, Any]) -> BaseModel:
    """The document as the models of records are, so that one walk reads both."""
    told = {key: _member(value) for key, value in document.items()}
    return (Figures if "provenance" in document else _Facts).model_validate(told)


def _member(value: Any) -> Any:
    if isinstance(value, dict):
        return value if not _shaped(value) else _modelled(value)
    if isinstance(value, list):
        return [_modelled(v) if _shaped(v) else _observed(v) for v in value]
    return value


def _shaped(value: Any) -> bool:
    return isinstance(value, dict) and "provenance" in value


def _observed(value: Any) -> Any:
    return _Observation.model_validate(value) if isinstance(value, dict) else value


def _figure(quantity: Quantity) -> SweepFigure:
    return SweepFigure(
        path=quantity.path, key=quantity.key, value=quantity.value,
        conditions=dict(quantity.conditions), interval=quantity.interval,
        provenance=quantity.provenance,
    )  # fmt: skip
