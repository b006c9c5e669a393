"""Reading and writing profile files: every refusal names file, line and reason."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from nearfar.errors import BadInputError
from nearfar.files import read_text, write_whole
from nearfar.records.profile import SCHEMA_VERSION, Datasheet, Figure, Host, Profile

_FORMAT = "see docs/formats/profile.md, or copy from a shipped file"
_WIDTH = 100

Sheet = TypeVar("Sheet", bound=Datasheet)


def read_profile(path: Path) -> Profile:
    """Read a device profile. Raises BadInputError with file, line and reason."""
    return _validated(path, Profile, "device")


def read_host(path: Path) -> Host:
    """Read a host. Raises BadInputError with file, line and reason."""
    return _validated(path, Host, "host")


def read_datasheet(path: Path) -> Profile | Host:
    """Read whichever of the two a file is. Raises BadInputError with file, line and reason."""
    _, document = _parsed(path)
    return read_host(path) if document.get("kind") == "host" else read_profile(path)


def _parsed(path: Path) -> tuple[str, dict[str, Any]]:
    if not path.exists():
        raise BadInputError(
            f"no such file: {path}", "`nearfar profile list` names all profiles and hosts"
        )
    text = read_text(path, "give a TOML file")
    try:
        return text, tomllib.loads(text)
    except RecursionError:
        raise BadInputError(f"{path} is damaged: nested too deeply", _FORMAT) from None
    except ValueError as error:  # TOML's own, and a number of thousands of digits
        raise BadInputError(
            f"{path} is damaged: {_placed(str(error), text)}", f"fix it there; {_FORMAT}"
        ) from None


def _placed(complaint: str, text: str) -> str:
    """A parser's complaint with its line in front; the end of the file is the last line."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", complaint, re.DOTALL)
    if found:
        return f"line {found[2]}, column {found[3]}: {found[1]}"
    return f"line {len(text.splitlines())}: {complaint}"


def _validated(path: Path, model: type[Sheet], kind: str) -> Sheet:
    text, document = _parsed(path)
    version = document.get("schema_version")
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise BadInputError(
            f"{path}, line {_line_of(text, ['schema_version'])}: schema_version "
            f"{'is missing' if version is None else repr(version)} (known: 1 to {SCHEMA_VERSION})",
            f"use a newer nearfar if it comes from one; {_FORMAT}",
        )
    if document.get("kind") != kind:
        raise BadInputError(
            f"{path}, line {_line_of(text, ['kind'])}: kind is {document.get('kind')!r}, and a "
            f"{kind} was needed",
            f"name a {kind}; {_FORMAT}",
        )
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise BadInputError(f"{path}, {_first_complaint(error, text)}", _FORMAT) from None


def _first_complaint(error: ValidationError, text: str) -> str:
    """Line, field and reason of what is wrong first: a misspelt field before an absent one."""
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    where = [str(part) for part in first["loc"]]
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        fields = (Figure if len(where) > 1 else Datasheet).model_fields
        near = difflib.get_close_matches(where[-1], fields, n=1)
        reason += f"; did you mean {near[0]}?" if near else f" (known: {', '.join(fields)})"
    named = re.match(r"(figures)\.(\w+): ", reason)  # complaints about figures against the whole
    if named and not where:
        where, reason = [named[1], named[2]], reason[named.end() :]
    return f"line {_line_of(text, where)}: {'.'.join(where)}: {reason}"


def _line_of(text: str, where: Sequence[str]) -> int:
    """Line of a field, or of the nearest table that should hold it; 1 where nothing is found."""
    table = ""
    best = (0, 1)  # how many parts of the path matched, and where
    for number, line in enumerate(text.splitlines(), start=1):
        heading = re.match(r"\s*\[([^\[\]]+)\]", line)
        if heading and "=" not in line.split("]")[0]:
            table = re.sub(r"[\s\"']", "", heading[1])
            path = table
        else:
            key = re.match(r"\s*([A-Za-z0-9_.\"'-]+)\s*=", line)
            if not key:
                continue
            name = key[1].strip("\"'")
            path = f"{table}.{name}" if table else name
        parts = path.split(".")
        if parts == list(where[: len(parts)]) and len(parts) > best[0]:
            best = (len(parts), number)
    return best[1]


def write_profile(sheet: Datasheet, path: Path) -> None:
    """Write a profile or a host, whole or not at all. Raises MachineError if it cannot."""
    write_whole(path, to_toml(sheet), "name a file that you may write")


def to_toml(sheet: Datasheet) -> str:
    """The text of a file: head, sources, then the figures, each a table."""
    head = {name: value for name, value in _known(sheet) if not isinstance(value, dict)}
    lines = [*_fields(head), "", "[sources]", *_fields(sheet.sources)]
    if isinstance(sheet, Host) and sheet.measured:
        lines += ["", "[measured]", *_fields(dict(_known(sheet.measured)))]
    tables = {f"figures.{key}": figure for key, figure in sheet.figures.items()}
    if isinstance(sheet, Host):
        for tier, figures in sheet.memories.items():
            tables |= {f"memories.{_scalar(tier)}.{key}": each for key, each in figures.items()}
    for name, figure in tables.items():
        lines += ["", f"[{name}]", *_figure(figure)]
    return "\n".join(lines) + "\n"


def _known(model: BaseModel) -> list[tuple[str, Any]]:
    return list(model.model_dump(mode="json", exclude_none=True).items())


def _fields(values: Mapping[str, object]) -> list[str]:
    return [f"{name} = {_scalar(value)}" for name, value in values.items()]


def _figure(figure: Figure) -> Iterator[str]:
    for name, value in _known(figure):
        if name in ("points", "ranges"):
            yield f"{name} = ["
            yield from _wrapped([_array(point) for point in value])
            yield "]"
        elif isinstance(value, list):
            yield f"{name} = {_array(value)}"
        else:
            yield f"{name} = {_scalar(value)}"


def _wrapped(items: Sequence[str]) -> Iterator[str]:
    line = " "
    for item in items:
        if len(line) + len(item) + 2 > _WIDTH and line.strip():
            yield line
            line = " "
        line += f" {item},"
    yield line


def _array(values: Sequence[object]) -> str:
    return f"[{', '.join(_scalar(value) for value in values)}]"


def _scalar(value: object) -> str:
    """A number or a basic string; JSON's escapes are TOML's, but for the delete character."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
