"""Atomic writes of whole files, and strict reads of text and JSON files."""

from __future__ import annotations

import codecs
import contextlib
import errno
import json
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from nearfar.errors import BadInputError, MachineError


def partial_of(path: Path) -> tuple[Path, Path]:
    """The file that a path resolves to, and the temporary file next to it that is renamed to it.

    For a device or a pipe, which is written in place, both are the path itself.
    """
    if path.exists() and not path.is_file():
        return path, path
    target = Path(os.path.realpath(path))
    return target, target.with_name(f"{target.name}.partial")


def require_place(path: Path, next_step: str) -> None:
    """Check that ``write_whole`` can write to this path, before the work that produces the content.

    Raises MachineError with ``next_step`` for a directory, a missing parent, or missing permission.
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


def require_directory_place(path: Path, next_step: str) -> None:
    """Check that a directory can be made at this path with its parents, or exists already.

    Makes a directory in the lowest one that exists, and removes it: permissions alone do
    not decide on a file system such as /proc. Raises MachineError with ``next_step``.
    """
    # Unlike those of Path, these functions return False where a parent may not be searched.
    if os.path.isdir(path):  # noqa: PTH112
        return
    parents = (*path.parents, Path.cwd())
    above = next(parent for parent in parents if os.path.exists(parent))  # noqa: PTH110
    try:
        Path(tempfile.mkdtemp(prefix=".nearfar-", dir=above)).rmdir()
    except OSError as error:
        raise MachineError(f"cannot make {path}: {error.strerror}", next_step) from None


def _cannot_write(path: Path, error: OSError, next_step: str) -> MachineError:
    return MachineError(f"cannot write {path}: {error.strerror}", next_step)


def write_whole(path: Path, content: str | bytes, next_step: str) -> None:
    """Write a temporary file and rename it: a crash leaves the old content or the new one.

    The target of a link is replaced, not the link. A device or a pipe is written in place. Raises
    MachineError with ``next_step``; the previous content is then unchanged.
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


#: Text has no zero byte; the check also ends reads of devices such as /dev/zero.
_LOOKED_AT = 1 << 16


def read_text(path: str | Path, next_step: str) -> str:
    """The text of a file in UTF-8, without a byte order mark.

    Raises BadInputError with ``next_step`` where it cannot be read or is not text.
    """
    try:
        return read_text_bytes(path, next_step).decode()
    except UnicodeDecodeError:
        raise BadInputError(f"cannot read {path}: it is not text in UTF-8", next_step) from None


def read_text_bytes(path: str | Path, next_step: str) -> bytes:
    """The text of a file in any encoding that extends ASCII, without the byte order mark of UTF-8.

    Raises BadInputError with ``next_step`` where it cannot be read or is not text.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            data = _first_of_pipe(file.fileno()) + file.read(_LOOKED_AT)
            if b"\0" in data:
                raise BadInputError(f"cannot read {path}: it is a binary file", next_step)
            return (data + file.read()).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}", next_step) from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _first_of_pipe(descriptor: int) -> bytes:
    """Data that is in a pipe; reads from the file wait from now on.

    Raises OSError for a pipe that is empty and has no writer: a read would never end.
    """
    first = b""
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        with contextlib.suppress(BlockingIOError):  # it is empty, and has a writer
            first = os.read(descriptor, _LOOKED_AT)
            if not first:
                raise OSError(errno.EPIPE, "it is an empty pipe that no program writes to")
    os.set_blocking(descriptor, True)
    return first


def require_file(path: Path, what: str, next_step: str) -> None:
    """Check that this is a regular file, which can be read several times.

    Raises BadInputError with ``next_step``; ``what`` says what the file is to be.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadInputError(f"invalid {what} {path}: not a regular file", next_step)
    except FileNotFoundError:
        raise BadInputError(f"no such {what}: {path}", next_step) from None
    except OSError as error:
        raise BadInputError(f"cannot read {what} {path}: {error.strerror}", next_step) from None


def read_json(path: str | Path, next_step: str, *, finite: bool = True) -> Any:
    """The document of a JSON file. Raises BadInputError with ``next_step``, like ``read_text``.

    NaN and Infinity are refused unless ``finite`` is False: a model that checks the document names
    the field that has them.
    """
    return parse_json(read_text(path, next_step), path, next_step, finite=finite)


def parse_json(text: str, path: str | Path, next_step: str, *, finite: bool = True) -> Any:
    """The document in the text of a file, as ``read_json`` returns it."""
    try:
        return json.loads(text, parse_constant=_no_constant if finite else None)
    except json.JSONDecodeError as error:
        why = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError:
        why = "nested too deeply"
    except ValueError as error:  # a constant, or a number of thousands of digits
        why = str(error)
    raise BadInputError(f"{path} is damaged: {why}", next_step)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def write_table(path: Path, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a CSV file that models can read. Raises MachineError if it cannot be written."""
    lines = [",".join(map(str, row)) for row in (heads, *rows)]
    write_whole(path, "\n".join(lines) + "\n", "name another file after --csv")
