"""Helper programs and libraries next to the native core, and how their output is read.

A program prints lines; on refusal it prints ``error CODE``, the cause, and the next step.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar import _native
from nearfar.errors import MachineError, NearfarError, from_native

if TYPE_CHECKING:
    from nearfar._native import Usage

#: Directory of the native core, wherever the package is installed.
NATIVE_DIR = Path(_native.__file__).parent
_SEPARATORS = re.compile(r"[\s:,]")
#: Next step if a component was left out of the build.
WITH_LIBPMEMOBJ = (
    "apt-get install libpmemobj-dev, then build again: make build, or, where pip installed "
    "nearfar, pip install --force-reinstall --no-deps of its sources"
)


@dataclass(frozen=True)
class Refusal:
    """A refusal instead of figures; ``code`` is an error code of the native core."""

    code: str
    what: str
    next_step: str

    def error(self, of: str = "") -> NearfarError:
        """The error to raise; ``of`` is a prefix of the message."""
        return from_native(RuntimeError(self.code, of + self.what, self.next_step, 0))


@dataclass(frozen=True)
class Answer:
    """Lines of standard output, exit status, and the end of standard error."""

    lines: list[str]
    code: int
    complaint: str

    @property
    def refusal(self) -> Refusal | None:
        """The refusal; None for an answer and for a program that died."""
        if not self.lines or not self.lines[0].startswith("error "):
            return None
        what, next_step = [*self.lines[1:], "", ""][:2]
        return Refusal(self.lines[0].removeprefix("error "), what, next_step)

    @property
    def died(self) -> bool:
        """Whether the program died, without figures to read."""
        return self.code != 0 or not self.lines

    @property
    def figures(self) -> dict[str, str]:
        """The figures from lines of ``KEY VALUE``."""
        return dict(line.split(" ", 1) for line in self.lines)


def shipped(name: str) -> Path:
    """Path of a program or library that some builds leave out. Raises MachineError if missing."""
    path = NATIVE_DIR / name
    if not path.exists():
        raise MachineError(
            f"this nearfar was built without {name}",
            WITH_LIBPMEMOBJ,
        )
    return path


def preloadable(name: str) -> str:
    """Path of a shipped library for LD_PRELOAD or for options of the emulator.

    LD_PRELOAD is separated by blanks and colons, options of the emulator by commas, and neither can
    always quote them: a library below such a directory is named through a link to its directory,
    which is removed when this process ends. Raises MachineError.
    """
    path = shipped(name)
    if not _SEPARATORS.search(str(path)):
        return str(path)
    return str(_link_to(path.parent) / path.name)


@functools.cache
def _link_to(folder: Path) -> Path:
    """A link to a directory, whose own path has no separators. Raises MachineError."""
    made = tempfile.mkdtemp(prefix="nearfar-")
    atexit.register(_remove_link, made, os.getpid())
    if _SEPARATORS.search(made):
        raise MachineError(
            f"no library can be preloaded from {folder}, nor through a link in {made}: both paths "
            "have a blank, a colon or a comma",
            "set TMPDIR to another directory, or install nearfar elsewhere",
        )
    link = Path(made) / "native"
    link.symlink_to(folder)
    return link


def _remove_link(made: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a fork
        shutil.rmtree(made, ignore_errors=True)


def without_preload() -> dict[str, str]:
    """The environment without preloaded libraries of the user."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


def ask(command: Sequence[str], library: str = "") -> Answer:
    """Run a helper program to its end, with ``library`` preloaded."""
    environment = without_preload()
    if library:
        environment["LD_PRELOAD"] = library
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    return Answer(done.stdout.splitlines(), done.returncode, done.stderr.strip()[-200:])


def usage_of(figures: Mapping[str, str]) -> Usage:
    """The thread accounts that a program prints."""
    return {
        "wall_ns": int(figures["thread_wall_ns"]),
        "cpu_ns": int(figures["thread_cpu_ns"]),
        "minor_faults": int(figures["minor_faults"]),
        "major_faults": int(figures["major_faults"]),
        "involuntary_switches": int(figures["involuntary_switches"]),
    }
