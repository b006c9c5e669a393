"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from nearfar.errors import MachineError


def write_whole(path: Path, text: str, next_step: str) -> None:
    """Write a file by way of a neighbour and a rename: a crash leaves the old one or the new one.

    What a link leads to is replaced, not the link. A device or a pipe is written as it is. Raises
    MachineError with ``next_step``; then what was there before is still there.
    """
    in_place = path.exists() and not path.is_file()
    target = path if in_place else Path(os.path.realpath(path))  # noqa: PTH - resolve() may raise
    partial = target if in_place else target.with_name(f"{target.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
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
