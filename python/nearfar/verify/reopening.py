"""Programs that are started again on an image of their pool, where no checker is given."""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Stands for the path of the image in the words of a command.
IMAGE = "{image}"
#: What may stand before a path in a word: --pool=PATH, file:PATH.
_PREFIX = re.compile(r"[=:,]")
_POOL = 18  # docs/formats/storelog.md
_HEADERS = struct.Struct("<16x 8x B x H I Q I I")


def recorded_pool(log: Path) -> Path | None:
    """The pool that a log is about, from its first record; None if nothing was recorded."""
    record = _pool_record(log)
    return None if record is None else record[1]


def recording_process(log: Path) -> int | None:
    """The ID of the process that a log is about."""
    record = _pool_record(log)
    return None if record is None else record[0]


def _pool_record(log: Path) -> tuple[int, Path] | None:
    if not log.exists():
        return None
    with log.open("rb") as file:
        start = file.read(_HEADERS.size)
        if len(start) < _HEADERS.size:
            return None
        tag, _thread, process, *_, data_bytes = _HEADERS.unpack(start)
        return (process, Path(os.fsdecode(file.read(data_bytes)))) if tag == _POOL else None


def command_on_image(program: Sequence[str], pool: Path) -> list[str] | None:
    """The words of a program with IMAGE in place of its pool; None if none of them names it."""
    words = [program[0], *(_with_image(word, pool) for word in program[1:])]
    return words if words != list(program) else None


def command_arguments(words: Sequence[str], image: Path) -> dict[str, str]:
    """Such words as the explorer reads them, for an image at this path."""
    return {f"program{i}": _filled(word, image) for i, word in enumerate(words)}


def input_file() -> str:
    """The file that is standard input, which is read again at each start; otherwise nothing is."""
    try:
        status = os.fstat(0)
        path = Path("/proc/self/fd/0").readlink()
        if stat.S_ISREG(status.st_mode) and os.path.samestat(status, path.stat()):
            return str(path)
    except OSError:
        pass
    return os.devnull


def input_is_lost() -> bool:
    """Whether standard input is a pipe or a socket, which only the recorded run reads."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def method_arguments(method: Mapping[str, object]) -> dict[str, object]:
    """How images were checked (Exploration.reopening), as the explorer reads it."""
    expected = method.get("expected")
    assert isinstance(expected, list)
    return {
        "inspected": int(bool(method["inspected"])),
        "started": int(bool(method["started"])),
        **{f"expected{i}": number for i, number in enumerate(expected)},
    }


def _with_image(word: str, pool: Path) -> str:
    """A word whose end names the pool, with IMAGE in its place."""
    for start in (0, *(match.end() for match in _PREFIX.finditer(word))):
        if _is_pool(word[start:], pool):
            return word[:start] + IMAGE
    return word


def _is_pool(text: str, pool: Path) -> bool:
    if not text:
        return False
    try:
        return Path(text).samefile(pool)
    except (OSError, ValueError):
        return Path(text).absolute() == pool


def _filled(word: str, image: Path) -> str:
    return word.removesuffix(IMAGE) + str(image) if word.endswith(IMAGE) else word
