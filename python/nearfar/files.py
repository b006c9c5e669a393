"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from nearfar.errors import MachineError


def partial_of(path: Path) -> tuple[Path, Path]:
    """The file that a path leads to, and the neighbour that is written before it takes its name.

    Of a device or a pipe, which is written as it is, both are the path itself.
    """
    if path.exists() and not path.is_file():
        return path, path
    target = Path(os.path.realpath(path))  # noqa: PTH - resolve() may raise
    return target, target.with_name(f"{target.name}.partial")


def require_place(path: Path, next_step: str) -> None:
    """See that ``write_whole`` finds where to write, before the work that is to be written.

    Raises MachineError with ``next_step`` for a folder, a missing one, one without permission.
    """
    try:
        target, partial = partial_of(path)
        folder = target.parent
        if target.is_dir():
            why = errno.EISDIR
        elif partial == target:
            why = 0 if os.access(target, os.W_OK) else errno.EACCES
        elif not stat.S_ISDIR(folder.stat().st_mode):
            why = errno.ENOTDIR
        else:
            why = 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES
        if why:
            raise OSError(why, os.strerror(why))
    except OSError as error:
        raise _cannot_write(path, error, next_step) from None


def _cannot_write(path: Path, error: OSError, next_step: str) -> MachineError:
    return MachineError(f"cannot write {path}: {error.strerror}", next_step)


def write_whole(path: Path, content: str | bytes, next_step: str) -> None:
    """Write a file by way of a neighbour and a rename: a crash leaves the old one or the new one.

    What a link leads to is replaced, not the link. A device or a pipe is written as it is. Raises
    MachineError with ``next_step``; then what was there before is still there.
    """
    data = content.encode() if isinstance(content, str) else content
    require_place(path, next_step)
    target, partial = partial_of(path)
    in_place = partial == target
    try:
        with partial.open("wb") as file:
            file.write(data)
            if in_place:
                return
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        if not in_place:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
        raise _cannot_write(path, error, next_step) from None
