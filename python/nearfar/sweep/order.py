"""What is to be run: a verb with its arguments, and the id by which its result is found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nearfar import __version__
from nearfar.records.sweep import Scalar


@dataclass(frozen=True)
class Order:
    """One cell to run, here or on another machine: picklable, and complete in itself.

    ``measures``: it times something, so nothing else may run beside it; ``records``: the verb
    takes ``--out`` and writes a record there.
    """

    id: str
    verb: str
    arguments: tuple[str, ...]
    varied: dict[str, Scalar]
    measures: bool
    records: bool

    @property
    def command(self) -> str:
        """As it would be typed."""
        return " ".join(("nearfar", self.verb, *self.arguments))


def identify(verb: str, arguments: Iterable[str], digest: Callable[[str], str]) -> str:
    """The verb, and 12 hexadecimal digits of SHA-256 over verb, arguments, version, and the content
    of every file that an argument names: a changed trace or profile is another cell. ``digest`` is
    ``digest_of``, or remembers what that told."""
    given = list(arguments)
    contents = [content for argument in given if (content := digest(argument))]
    told = json.dumps([verb, given, __version__, contents])
    return f"{verb.replace(' ', '-')}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def digest_of(argument: str) -> str:
    """SHA-256 of the file that an argument names; nothing where it names none."""
    path = Path(argument)
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # no name of a file, or none that we may read: the verb will say
        return ""
