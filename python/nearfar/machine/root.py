"""Read ``/proc``, ``/sys`` and ``/dev`` below a root directory, which may be a test fixture.

A file that is missing or not readable is not an error here: a machine may lack any of them. The
result says which of the two it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Look:
    """The result of reading one file: its text, or why it could not be read."""

    text: str | None
    trouble: str = ""


@dataclass(frozen=True)
class Root:
    """A directory that holds ``proc``, ``sys`` and ``dev``; names are relative to it."""

    path: Path = Path("/")

    @property
    def live(self) -> bool:
        """Whether this is the machine we run on, so that system calls describe it too."""
        return self.path == Path("/")

    def look(self, name: str) -> Look:
        """Text of a file without surrounding whitespace, or why it could not be read."""
        try:
            text = (self.path / name).read_text(encoding="utf-8", errors="replace")
            return Look(text.strip())
        except (FileNotFoundError, NotADirectoryError):
            return Look(None, f"/{name} is missing")
        except PermissionError:
            return Look(None, f"no permission to read /{name}")
        except OSError as error:
            return Look(None, f"/{name} cannot be read: {error.strerror}")

    def text(self, name: str) -> str | None:
        """Text of a file; None if it cannot be read."""
        return self.look(name).text

    def number(self, name: str) -> int | None:
        """A whole number, decimal or ``0x…``; None if there is none."""
        try:
            return int(self.text(name) or "", 0)
        except ValueError:
            return None

    def kib(self, name: str, key: str) -> int | None:
        """Bytes of a line such as ``MemTotal:  123 kB``, which other words may precede."""
        match = re.search(rf"\b{key}:\s*(\d+) kB", self.text(name) or "")
        return int(match[1]) << 10 if match else None

    def names(self, directory: str) -> list[str]:
        """Entries of a directory, sorted; empty if it cannot be listed."""
        try:
            return sorted(entry.name for entry in (self.path / directory).iterdir())
        except OSError:
            return []

    def real(self, name: str) -> str:
        """The path below the root with all links resolved: it contains a device's ancestors."""
        resolved = (self.path / name).resolve()
        try:
            return str(resolved.relative_to(self.path.resolve()))
        except ValueError:
            return str(resolved)

    def property(self, name: str, key: str) -> str | None:
        """The value of ``KEY=value`` in a ``uevent`` file."""
        for line in (self.text(name) or "").splitlines():
            found, _, value = line.partition("=")
            if found == key:
                return value
        return None
