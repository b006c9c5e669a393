"""A cell to run: a verb with its arguments, and the id under which its result is cached."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nearfar
from nearfar import _native
from nearfar.records.sweep import Scalar


@dataclass(frozen=True)
class WorkOrder:
    """One cell to run, here or on another machine: picklable, and complete in itself.

    ``measures``: it times something, so nothing else may run concurrently; ``records``: the verb
    takes ``--out`` and writes a record there. What changes the result must be part of
    ``arguments``: ``identify`` computes ``id`` from them, and a finished cell with this id is not
    run again.
    """

    id: str
    verb: str
    arguments: tuple[str, ...]
    varied: dict[str, Scalar]
    measures: bool
    records: bool

    @property
    def command(self) -> str:
        """The command line as typed by a user."""
        return " ".join(("nearfar", self.verb, *self.arguments))


def identify(verb: str, arguments: Iterable[str], digest: Callable[[str], str]) -> str:
    """The verb, and 12 hexadecimal digits of SHA-256 over verb, arguments, build, and the content
    of every file that an argument names: a changed trace, profile or nearfar gives another id.
    ``digest`` is ``digest_of``, possibly cached."""
    given = list(arguments)
    contents = [content for argument in given if (content := digest(argument))]
    key = json.dumps([verb, given, build(), contents])
    return f"{verb.replace(' ', '-')}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


@cache
def build() -> str:
    """SHA-256 over the files of nearfar, Python and native: two builds of one version differ."""
    folders = {Path(str(file)).parent for file in (nearfar.__file__, _native.__file__)}
    found = hashlib.sha256()
    for folder in sorted(folders):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                found.update(str(file.relative_to(folder)).encode())
                found.update(digest_of(str(file)).encode())
    return found.hexdigest()


def digest_of(argument: str) -> str:
    """SHA-256 of the file that an argument names; empty if it names none."""
    path = Path(argument)
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # not a readable file name: the verb reports it
        return ""
