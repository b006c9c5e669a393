"""Suite files: which verbs to run, with which flags, over which grid.

    title = "Random requests on five memories"
    verb = "sim"
    flags = { pattern = "random", n = 200000 }
    grid = { far = ["pcm-lee", "cxl-ddr5"], page-policy = ["open", "closed"] }

A key is a flag without its dashes, or the name of an argument; ``true`` gives a flag without a
value, a list a repeated flag. The grid is the product of its lists, the last one varying fastest.
A suite of several verbs has a ``[[run]]`` for each. ``full``, with flags and a grid of its own, is
merged over them by ``--full``. See ``docs/formats/suite.md`` for the format.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nearfar.errors import BadInputError
from nearfar.files import read_text
from nearfar.records.sweep import Scalar

Value = Scalar | list[Scalar]
Flags = dict[str, Value]

#: More cells are a mistake, such as a list of every byte count.
MAX_CELLS = 100_000


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Full(_Strict):
    """Changes of the long form."""

    flags: Flags = Field(default_factory=dict)
    grid: dict[str, list[Value]] = Field(default_factory=dict)


class SuiteRun(_Strict):
    """One verb over one grid."""

    verb: str
    flags: Flags = Field(default_factory=dict)
    grid: dict[str, list[Value]] = Field(default_factory=dict)
    full: Full = Field(default_factory=Full)


class Suite(_Strict):
    """A suite file. ``name`` is that of the file."""

    name: str
    title: str = ""
    source: str = ""
    run: list[SuiteRun] = Field(min_length=1)


@dataclass(frozen=True)
class Cell:
    """One point of a grid. ``where`` names its run, for error messages."""

    where: str
    verb: str
    values: Flags
    varied: dict[str, Scalar]


def suite_names() -> list[str]:
    """Names of the shipped suites."""
    return sorted(file.stem for file in _shipped().glob("*.toml"))


def load_suite(name_or_path: str) -> Suite:
    """Load a shipped suite by name, or a file. Raises BadInputError that names what is wrong."""
    known = name_or_path in suite_names()
    path = _shipped() / f"{name_or_path}.toml" if known else Path(name_or_path)
    next_step = f"name a shipped suite ({', '.join(suite_names())}), or fix the file"
    text = read_text(path, next_step)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"cannot read the suite {path}: {error}", next_step) from None
    return _validated(document, path)


def cells(suite: Suite, *, full: bool = False) -> list[Cell]:
    """The cells of all grids, in the order of the file. Raises BadInputError for empty lists."""
    found: list[Cell] = []
    for number, run in enumerate(suite.run, 1):
        found += _cells(suite, run, f"run {number}", full)
    return found


def _cells(suite: Suite, run: SuiteRun, where: str, full: bool) -> Iterator[Cell]:
    flags, grid = _over(run) if full else (run.flags, run.grid)
    size = 1
    for key, values in grid.items():
        if not values:
            raise BadInputError(
                f"suite {suite.name}, {where}: grid.{key} is empty", "give it a value, or remove it"
            )
        if key in flags:
            raise BadInputError(
                f"suite {suite.name}, {where}: {key} is among the flags and in the grid",
                "keep one of them",
            )
        size *= len(values)
    if size > MAX_CELLS:
        raise BadInputError(
            f"suite {suite.name}, {where}: a grid of {size:,} cells (at most {MAX_CELLS:,})",
            "shorten its lists, or split the suite",
        )
    for point in itertools.product(*grid.values()):
        chosen = dict(zip(grid, point, strict=True))
        yield Cell(
            where, run.verb, {**flags, **chosen}, {k: _as_scalar(v) for k, v in chosen.items()}
        )


def _over(run: SuiteRun) -> tuple[Flags, dict[str, list[Value]]]:
    """Flags and grid of the long form, which may move a key from one to the other."""
    flags = {k: v for k, v in run.flags.items() if k not in run.full.grid}
    grid = {k: v for k, v in run.grid.items() if k not in run.full.flags}
    return {**flags, **run.full.flags}, {**grid, **run.full.grid}


def _as_scalar(value: Value) -> Scalar:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _validated(document: dict[str, Any], path: Path) -> Suite:
    # A suite with one run may have the keys of the run at the top level.
    top_level = {key: document.pop(key) for key in list(SuiteRun.model_fields) if key in document}
    if top_level and "run" in document:
        raise BadInputError(
            f"{path}: {next(iter(top_level))} is used together with [[run]]",
            "put it into a [[run]] of its own",
        )
    if top_level:
        document["run"] = [top_level]
    try:
        return Suite.model_validate({"name": path.stem, **document})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
        raise BadInputError(
            f"{path}: {where}: {first['msg']}",
            "fix the file; see `nearfar sweep --help` for an example",
        ) from None


def _shipped() -> Path:
    return Path(str(files(__name__.rpartition(".")[0]) / "suites"))
