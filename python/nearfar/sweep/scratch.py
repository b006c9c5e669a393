"""Temporary folders of running cells, removed even if the process that created them was killed.

A folder is locked by its users: the process that created it, and the verb. An unlocked one was left
by a killed process, and the next cell on the machine removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: Prefix of the folder name of a running cell.
UNDER_WAY = "nearfar-cell-under-way-"


@contextlib.contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[tuple[Path, int]]:
    """Yield a new folder, by default among temporary files, and the descriptor that locks it."""
    where = parent or Path(tempfile.gettempdir())
    remove_abandoned(where)
    folder, descriptor = _made(where)
    try:
        yield folder, descriptor
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_abandoned(parent: Path | None = None) -> None:
    """Remove the folders of killed processes."""
    for folder in (parent or Path(tempfile.gettempdir())).glob(f"{UNDER_WAY}*"):
        with contextlib.suppress(OSError):  # locked, another user's, or already removed
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _made(parent: Path) -> tuple[Path, int]:
    """A new locked folder; retries if another process removes it before it is locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=UNDER_WAY, dir=parent))
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if folder.is_dir():
                return folder, descriptor
            os.close(descriptor)
