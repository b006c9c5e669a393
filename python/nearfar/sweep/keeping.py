"""The folder of a sweep: one folder for each cell, complete or absent, found by its id.

DIR/run.json            the record of the sweep: all cells and their figures
DIR/results.csv         the same as one table, a row a figure; also as .parquet with polars
DIR/report.html
DIR/cells/ID/           every file that the verb wrote (run.json, samples.jsonl, plans, profiles, or
                        answer.json; table.csv where csv was asked for)
DIR/cells/ID/cell.json  what was run, how it ended, and its figures; written last
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from nearfar import __version__
from nearfar.errors import BadInputError, MachineError
from nearfar.files import write_whole
from nearfar.records.sweep import SweepCell
from nearfar.sweep.reading import read_figures, read_record
from nearfar.sweep.running import Outcome
from nearfar.sweep.scratch import UNDER_WAY
from nearfar.sweep.work_order import WorkOrder

_CELL = "cell.json"
_NEXT = "free some space and sweep again: finished cells are kept; or begin anew with --out DIR"


class Cells:
    """The cells of one sweep on disk. One process at a time: see ``opened``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, order: WorkOrder) -> SweepCell | None:
        """A cell finished by an earlier sweep; None for failed and for damaged ones."""
        try:
            text = (self.folder / order.id / _CELL).read_text(encoding="utf-8")
            cell = SweepCell.model_validate_json(text)
        except (OSError, ValidationError, UnicodeDecodeError):
            return None
        return (
            cell.model_copy(update={"varied": order.varied}) if cell.status == "finished" else None
        )

    def keep(self, outcome: Outcome) -> SweepCell:
        """Write a cell to disk. Raises MachineError if it cannot be written."""
        folder = self.folder / outcome.order.id
        try:
            if folder.exists():
                shutil.rmtree(folder)
            folder.mkdir()
            for name, content in outcome.files.items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(_moved(content, outcome.folder, folder))
        except OSError as error:
            raise MachineError(f"cannot write {folder}: {error.strerror}", _NEXT) from None
        cell = _read(outcome, folder)
        write_whole(folder / _CELL, cell.model_dump_json(indent=1, exclude_none=True) + "\n", _NEXT)
        return cell


def _moved(content: bytes, old: str, new: Path) -> bytes:
    """File content with the cell's temporary folder replaced by its final one."""
    return content.replace(old.encode(), str(new).encode()) if old else content


def _read(outcome: Outcome, folder: Path) -> SweepCell:
    order, finished, message = outcome.order, outcome.finished, outcome.message
    record, figures = None, []
    if finished:
        try:
            record = read_record(folder)
            figures = read_figures(folder, record)
        except BadInputError as error:
            finished, message = False, error.what
    return SweepCell(
        id=order.id,
        verb=order.verb,
        flags=list(order.arguments),
        varied=order.varied,
        status="finished" if finished else "failed",
        exit_code=outcome.exit_code,
        message=message,
        started=outcome.started,
        took_s=outcome.took_s,
        machine=str(record.machine.get("id", outcome.host)) if record else outcome.host,
        nearfar_version=__version__,
        noise=record.noise if record else None,
        figures=figures,
    )


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Cells]:
    """The cells below a sweep's folder; unfinished cells of a killed sweep are removed.

    Raises BadInputError if another sweep uses the folder, or it holds something else.
    """
    cells = folder / "cells"
    if folder.exists() and not cells.is_dir():
        raise BadInputError(f"{folder} exists and is not a sweep", "name another --out")
    try:
        cells.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(cells, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise MachineError(
            f"cannot make {cells}: {error.strerror}", "name a directory you may write to: --out DIR"
        ) from None
    try:
        _lock(descriptor, folder)
        for left in cells.glob(f"{UNDER_WAY}*"):  # no other sweep uses this folder
            shutil.rmtree(left, ignore_errors=True)
        yield Cells(cells)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadInputError(
            f"another sweep is at work in {folder}", "wait for it, or name another --out"
        ) from None
