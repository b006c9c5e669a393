"""Write and read the model file of ``fit contention``."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from nearfar.errors import BadInputError, MachineError
from nearfar.files import read_json
from nearfar.model.contention import VERSION, ContentionModel


def write_model(model: ContentionModel, path: str | Path) -> None:
    """Write a model as JSON. Raises MachineError if the file cannot be written."""
    try:
        Path(path).write_text(model.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise MachineError(
            f"cannot write {path}: {error.strerror}", "name a file that you may write"
        ) from None


def read_model(path: str | Path) -> ContentionModel:
    """Read a model file, strictly. Raises BadInputError naming the field."""
    fit_again = "write it with `nearfar fit contention ROWS.csv --out M.json`"
    document = read_json(path, fit_again)
    if not isinstance(document, dict) or document.get("kind") != "nearfar-contention":
        raise BadInputError(f"{path} is not a contention model", fit_again)
    if document.get("version") != VERSION:
        raise BadInputError(
            f"{path}: version {document.get('version')!r} is unknown (known: {VERSION})", fit_again
        )
    try:
        return ContentionModel.model_validate(document)
    except ValidationError as error:
        raise BadInputError(f"{path}: {complaint(error)}", fit_again) from None


def complaint(error: ValidationError) -> str:
    """Field and reason of the first validation error; whole-model checks name their field."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    reason = first["msg"].removeprefix("Value error, ")
    return f"{where}: {reason}" if where else reason
