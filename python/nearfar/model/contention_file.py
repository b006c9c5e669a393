"""The file that ``fit contention`` writes and predictions about two sides read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

from pydantic import ValidationError

from nearfar.errors import BadInputError, MachineError
from nearfar.model.contention import VERSION, ContentionModel


def write_model(model: ContentionModel, path: str | Path) -> None:
    """Write a model as JSON. Raises MachineError if the file cannot be written."""
    try:
        Path(path).write_text(model.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise MachineError(
            f"cannot write {path}: {error.strerror}", "name a file that you may write"
        ) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def read_model(path: str | Path) -> ContentionModel:
    """Read what ``write_model`` wrote, strictly. Raises BadInputError naming the field."""
    fit_again = "write it with `nearfar fit contention ROWS.csv --out M.json`"
    try:
        text = Path(path).read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_no_constant)
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}", fit_again) from None
    except RecursionError:
        raise BadInputError(f"{path} is damaged: nested too deeply", fit_again) from None
    except ValueError as error:
        raise BadInputError(f"{path} is damaged: {error}", fit_again) from None
    if not isinstance(document, dict) or document.get("kind") != "nearfar-contention":
        raise BadInputError(f"{path} is no contention model", fit_again)
    if document.get("version") != VERSION:
        raise BadInputError(
            f"{path}: version {document.get('version')!r} is unknown (known: {VERSION})", fit_again
        )
    try:
        return ContentionModel.model_validate(document)
    except ValidationError as error:
        raise BadInputError(f"{path}: {complaint(error)}", fit_again) from None


def complaint(error: ValidationError) -> str:
    """Field and reason of the first thing that is wrong; a check of the whole names its field."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    reason = first["msg"].removeprefix("Value error, ")
    return f"{where}: {reason}" if where else reason
