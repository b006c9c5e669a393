"""Answers: the JSON documents of verbs that write no record, such as ``nearfar sim --json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from nearfar.errors import BadInputError
from nearfar.files import read_json
from nearfar.records.figures import Figures, ObservationModel


class _Facts(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Observation(ObservationModel):
    model_config = ConfigDict(extra="allow")


def read_answer(file: Path, next_step: str) -> BaseModel:
    """Read an answer of any verb. Raises BadInputError with the next step for anything else."""
    document = read_json(file, next_step)
    if not isinstance(document, dict):
        raise BadInputError(f"{file} is not a result of nearfar", next_step)
    return answer_of(document, str(file), next_step)


def is_answer(document: object) -> bool:
    """Whether a document has the shape of an answer: figures with their provenance."""
    return isinstance(document, dict) and "provenance" in document


def answer_of(document: dict[str, Any], name: str, next_step: str) -> BaseModel:
    """Return the document as a model, so that it can be walked like a record.

    Objects with provenance become ``FigureModel`` models, other objects models without figures.
    Raises BadInputError if the figures are damaged.
    """
    try:
        return _as_model(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInputError(f"{name} is damaged at {where}: {first['msg']}", next_step) from None


def _as_model(document: dict[str, Any]) -> BaseModel:
    members = {key: _member(value) for key, value in document.items()}
    return (Figures if is_answer(document) else _Facts).model_validate(members)


def _member(value: Any) -> Any:
    if isinstance(value, dict):
        return _as_model(value) if is_answer(value) else value
    if isinstance(value, list):
        return [_as_model(v) if is_answer(v) else _observed(v) for v in value]
    return value


def _observed(value: Any) -> Any:
    return _Observation.model_validate(value) if isinstance(value, dict) else value
