"""Traces that end too early: refused, unless the user asks for what they have."""

from __future__ import annotations

import os
from pathlib import Path

from nearfar.errors import BadInputError

#: First and last bytes of a complete trace (docs/formats/trace.md).
_HEAD, _FOOTER = b"NFTRACE\n", b"NFTRACE."


def refuse_unfinished(file: Path) -> None:
    """Raise BadInputError for a trace without its last bytes, before all of it is read.

    A file that is not a trace, or cannot be read, is left to its reader.
    """
    try:
        with file.open("rb") as stream:
            head = stream.read(len(_HEAD))
            stream.seek(-len(_FOOTER), os.SEEK_END)
            footer = stream.read()
    except OSError:
        return
    if head == _HEAD and footer != _FOOTER:
        raise truncation(file, "its end is missing")


def truncation(file: Path | str, why: str) -> BadInputError:
    """The error for a trace whose end is missing or damaged."""
    return BadInputError(
        f"{file} is truncated: {why}",
        "trace the program again, or use the part before that with --truncated",
    )
