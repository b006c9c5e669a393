"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
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


def write_whole(path: Path, content: str | bytes, next_step: str) -> None:
    """Write a file by way of a neighbour and a rename: a crash leaves the old one or the new one.

    What a link leads to is replaced, not the link. A device or a pipe is written as it is. Raises
    MachineError with ``next_step``; then what was there before is still there.
    """
    data = content.encode() if isinstance(content, str) else content
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
        raise MachineError(f"cannot write {path}: {error.strerror}", next_step) from None
