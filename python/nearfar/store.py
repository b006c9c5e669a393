"""Run directories: each finished section is on disk before the next measurement starts.

A directory holds ``run.json`` (replaced by rename after every section), ``samples.jsonl`` (one
series a line, appended when the series ends) and ``report.html`` if a report was written.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nearfar import __version__
from nearfar.errors import BadInputError, MachineError
from nearfar.files import parse_json, read_text, write_whole
from nearfar.records.run import SCHEMA_VERSION, Run

#: Default directory for runs, below the current directory.
DEFAULT_ROOT = Path("nearfar-runs")

#: In the directory of a sweep's cell: the result of a verb that keeps no record.
ANSWER = "answer.json"

_WHAT_TO_GIVE = "give a run directory, such as nearfar-runs/…, or its run.json"


def now() -> str:
    """The current time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def require_new(path: Path | None) -> None:
    """Raise BadInputError if a record cannot be made at ``path`` because something is there."""
    if path is not None and os.path.lexists(path):
        raise _exists(path)


def _exists(path: Path) -> BadInputError:
    return BadInputError(
        f"{path} exists already", "name another --out: a record is never overwritten"
    )


class RunDirectory:
    """A run being recorded. One process writes; any may read: ``run.json`` is always complete."""

    def __init__(self, path: Path, run: Run, made: Sequence[Path] = ()) -> None:
        """``made``: directories above ``path`` that were created for it, innermost first."""
        self.path = path
        self.run = run
        self._made = made

    @classmethod
    def create(cls, run: Run, path: Path | None = None) -> RunDirectory:
        """Make the directory (default: ``nearfar-runs/DATE-VERB``) and write the first record."""
        chosen = path or _fresh_name(run)
        made = [parent for parent in chosen.parents if not os.path.exists(parent)]  # noqa: PTH110
        try:
            chosen.mkdir(parents=True)
        except FileExistsError:
            raise _exists(chosen) from None
        except OSError as error:
            _remove_empty(made)
            raise MachineError(
                f"cannot make {chosen}: {error.strerror}",
                "name a directory you may write to: --out DIR",
            ) from None
        directory = cls(chosen, run, made)
        try:
            directory.save()
        except MachineError:
            directory.discard_if_empty()
            raise
        return directory

    def save(self) -> None:
        """Write ``run.json``; a crash leaves the old or the new content, never a part."""
        document = self.run.model_dump_json(indent=1, exclude_none=True) + "\n"
        write_whole(self.path / "run.json", document, "free some space, or use --out DIR")

    def discard_if_empty(self) -> bool:
        """Remove the directory if nothing was measured; returns whether it was removed."""
        finished = self.run.sections.model_dump(exclude_none=True)
        if finished or (self.path / "samples.jsonl").exists():
            return False
        (self.path / "run.json").unlink(missing_ok=True)
        _remove_empty((self.path, *self._made))
        return True

    def add_samples(self, series: str, unit: str, values: Sequence[float]) -> None:
        """Append the raw repeats of one series."""
        line = json.dumps({"series": series, "unit": unit, "values": list(values)})
        try:
            with (self.path / "samples.jsonl").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise MachineError(
                f"cannot write {self.path}/samples.jsonl: {error.strerror}",
                "free some space, or use --out DIR",
            ) from None


def _remove_empty(directories: Sequence[Path]) -> None:
    """Remove directories, innermost first, up to one that does not exist or is not empty."""
    existing = itertools.dropwhile(lambda path: not os.path.lexists(path), directories)
    with contextlib.suppress(OSError):  # not empty: another file, or another run
        for directory in existing:
            directory.rmdir()


def _fresh_name(run: Run) -> Path:
    stem = f"{run.started.replace(':', '').replace('-', '')}-{run.verb.replace(' ', '-')}"
    candidates = [DEFAULT_ROOT / stem, *(DEFAULT_ROOT / f"{stem}-{i}" for i in range(2, 100))]
    return next(c for c in candidates if not c.exists())


def read_run(path: Path) -> Run:
    """Read a record by its directory or its ``run.json``. Raises BadInputError naming the field."""
    return run_of(read_document(path), document_file(path))


def document_file(path: Path) -> Path:
    """The file itself; of a directory its record, or the answer of a verb that keeps no record."""
    if not os.path.isdir(path):  # noqa: PTH112 - is_dir() may raise
        return path
    record, answer = path / "run.json", path / ANSWER
    return answer if answer.exists() and not record.exists() else record


def read_document(path: Path) -> Any:
    """The JSON document of ``document_file(path)``. Raises BadInputError."""
    file = document_file(path)
    if not os.path.exists(file):  # noqa: PTH110
        raise BadInputError(f"no record at {path}", _WHAT_TO_GIVE)
    text = read_text(file, _WHAT_TO_GIVE)
    try:
        return parse_json(text, file, _WHAT_TO_GIVE, finite=False)
    except BadInputError:
        if text.lstrip().startswith("{"):
            raise
        what = f"{path} is not a record of nearfar: it is not JSON"
        raise BadInputError(what, _WHAT_TO_GIVE) from None


def run_of(document: Any, file: Path) -> Run:
    """Parse a document as a record. Raises BadInputError naming the field."""
    if not isinstance(document, dict) or "schema_version" not in document:
        raise BadInputError(
            f"{file} is not a record of nearfar: it has no schema_version",
            _WHAT_TO_GIVE,
        )
    if "record" in document and "sections" not in document:
        raise BadInputError(
            f"{file} is the JSON result of a verb, not its record",
            f"give the record: {document['record']}",
        )
    version = document["schema_version"]
    if not isinstance(version, int) or not 1 <= version <= SCHEMA_VERSION:
        raise BadInputError(
            f"{file} is not a record this nearfar reads (schema_version {version!r}, "
            f"known: 1 to {SCHEMA_VERSION})",
            "use a newer nearfar, or give a run directory",
        )
    try:
        return Run.model_validate(document)
    except ValidationError as error:
        raise _refusal(error, document, file) from None


def _refusal(error: ValidationError, document: dict[str, Any], file: Path) -> BadInputError:
    """The error for a record that is damaged, or has a key of a newer version."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return BadInputError(
            f"{file} has a key that nearfar {__version__} does not know: {where} (written by "
            f"nearfar {document.get('nearfar_version')})",
            "use the version that wrote it, or a newer one, or measure again",
        )
    return BadInputError(
        f"{file} is damaged at {where}: {first['msg']}",
        "restore it from a copy, or measure again",
    )


def previous_runs(verb: str, machine_id: str, root: Path = DEFAULT_ROOT) -> list[tuple[Path, Run]]:
    """Finished, undamaged runs of a verb on this machine below ``root``, oldest first."""
    found: list[tuple[Path, Run]] = []
    for file in sorted(root.glob("*/run.json")):
        try:
            run = read_run(file)
        except BadInputError:
            continue
        same = run.verb == verb and run.machine.get("id") == machine_id
        if same and run.status == "finished":
            found.append((file.parent, run))
    return sorted(found, key=lambda pair: pair[1].started)
