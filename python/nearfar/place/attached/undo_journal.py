"""The undo journal of ``nearfar place``: which pages came from which node.

A file of JSON lines in the folder of the record: first the process, then the runs of pages that are
about to move, as address, pages, node; last, once that was undone, a mark. It is written before the
pages move, so that a killed ``place`` can be undone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from nearfar.errors import BadInputError, MachineError
from nearfar.place.attached.page_origins import PageOrigins
from nearfar.process.running_process import ProcessIdentity
from nearfar.store import DEFAULT_ROOT
from nearfar.units import PAGE_BYTES

NAME = "moved-pages.jsonl"
_VERSION = 1
#: Limits of what a journal can have: addresses of programs, pages of a run, numbers of nodes. Pages
#: move in runs of a few MiB.
_ADDRESSES, _RUN_PAGES, _NODES = 1 << 57, 1 << 18, 255
_REFUSED_NEXT = (
    "revert with an undamaged copy; pages of the program that it maps anew are not moved"
)


class UndoJournal:
    """A journal that is being written. It is locked: what still moves is not reverted."""

    def __init__(self, folder: Path, process: ProcessIdentity) -> None:
        self._path = folder / NAME
        self._process = process
        self._file: TextIO | None = None
        self._origins = PageOrigins()

    def __enter__(self) -> UndoJournal:
        with self._reported():
            self._file = self._path.open("w", encoding="utf-8")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._line({"version": _VERSION, "process": asdict(self._process)})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, runs: Iterable[tuple[int, int, int]]) -> None:
        """Write that these pages are about to leave their node, unless they have left one before:
        the journal of a program that renews its memory does not grow. Raises MachineError."""
        new = [run for run in runs if self._origins.count(run[0], run[1]) < run[1]]
        if not new:
            return
        for address, pages, node in new:
            self._origins.set_first(address, pages, node)
        with self._reported():
            self._line({"moved": new})

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MachineError(
                f"cannot write {self._path}: {error.strerror}; no page was moved after that",
                "free some space, or use --out DIR",
            ) from None

    def _line(self, document: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(document) + "\n")
        self._file.flush()


def find_journal(process: ProcessIdentity, run: Path | None) -> Path:
    """The journal of a record, or else the newest of a process that was not undone yet: one in
    which pages moved, if there is one.

    Raises BadInputError if there is none, if it is of another process, or if it was undone.
    """
    if run is not None:
        return _named(process, run)
    folders = sorted(DEFAULT_ROOT.glob(f"*/{NAME}"), key=lambda file: file.stat().st_mtime_ns)
    found = []
    for file in reversed(folders):
        with contextlib.suppress(BadInputError):
            if process_of(file) == process and not _is_undone(file):
                found.append(file)
    if found:
        return next((file for file in found if _text(file).count("\n") > 1), found[0])
    raise BadInputError(
        f"no record below {DEFAULT_ROOT} is of process {process.pid} as it runs now",
        "if it is elsewhere, name its folder: --revert DIR; otherwise there is nothing to revert",
    )


def _named(process: ProcessIdentity, run: Path) -> Path:
    file = run / NAME
    if not file.is_file():
        raise BadInputError(
            f"{run} has no {NAME}: nothing was moved in this run", "name a record of nearfar place"
        )
    if process_of(file) != process:
        raise BadInputError(
            f"{run} is of another process: process {process.pid} was started later",
            "there is nothing to revert: the pages are gone with that process",
        )
    if _is_undone(file):
        raise BadInputError(f"{run} was reverted already", "nothing is left to do")
    return file


def read_origins(file: Path) -> PageOrigins:
    """Where pages were before they moved first. Raises BadInputError if the file is damaged."""
    origins = PageOrigins()
    for number, document in enumerate(_documents(file), start=1):
        for run in _moved(document, file, number):
            origins.set_first(*run)
    return origins


def _moved(document: dict[str, Any], file: Path, number: int) -> list[tuple[int, int, int]]:
    """The runs of pages in a line."""
    moved = document.get("moved", [])
    if not isinstance(moved, list) or not all(map(_is_run, moved)):
        raise _damaged(file, number, json.dumps(document))
    return [(address, pages, node) for address, pages, node in moved]


def _is_run(run: object) -> bool:
    if not isinstance(run, list) or len(run) != 3 or any(type(each) is not int for each in run):
        return False
    address, pages, node = (int(each) for each in run)
    return (
        address % PAGE_BYTES == 0
        and 0 <= address < _ADDRESSES
        and 1 <= pages <= _RUN_PAGES
        and 0 <= node < _NODES
    )


def _damaged(file: Path, number: int, line: str) -> BadInputError:
    return BadInputError(f"{file}:{number}: the journal is damaged: '{line[:80]}'", _REFUSED_NEXT)


def mark_undone(file: Path) -> None:
    """Note that the journal was undone, so that it is not found again."""
    with contextlib.suppress(OSError), file.open("r+b") as stream:
        stream.truncate(stream.read().rfind(b"\n") + 1)  # a line that was cut off
        stream.seek(0, os.SEEK_END)
        stream.write(json.dumps({"undone": True}).encode() + b"\n")


def require_free(file: Path) -> None:
    """Raise BadInputError if a ``nearfar place`` still writes the journal."""
    with file.open(encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            raise BadInputError(
                f"nearfar place still moves pages, with its record in {file.parent}",
                "end it with Ctrl-C or kill, then revert",
            ) from None


def process_of(file: Path) -> ProcessIdentity:
    """The process of a journal. Raises BadInputError if it is damaged."""
    first = _document(_text(file).partition("\n")[0]) or {}
    try:
        if first["version"] == _VERSION:
            return ProcessIdentity(**first["process"])
    except (KeyError, TypeError):
        pass
    raise BadInputError(
        f"{file} is not a journal that this nearfar reads", "use the nearfar that wrote it"
    )


def _is_undone(file: Path) -> bool:
    return any("undone" in document for document in _documents(file))


def _documents(file: Path) -> list[dict[str, Any]]:
    """Its lines; a last one that was cut off is left out. Raises BadInputError for other damage."""
    found = []
    *lines, _ = _text(file).split("\n")
    for number, line in enumerate(lines, start=1):
        document = _document(line)
        if document is None:
            raise _damaged(file, number, line)
        found.append(document)
    return found


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _document(line: str) -> dict[str, Any] | None:
    """A line of JSON; None if it is damaged."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(line)
        if isinstance(document, dict):
            return document
    return None
