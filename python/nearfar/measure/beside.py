"""Programs and libraries of ours that lie beside the native core, and what the programs answer.

A program prints lines; if it refuses, ``error CODE``, what is wrong, and the next step.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar import _native
from nearfar.errors import MachineError, NearfarError, from_native

if TYPE_CHECKING:
    from nearfar._native import Usage

#: Where they lie, wherever the package is installed.
BESIDE = Path(_native.__file__).parent
#: The next step where something was left out of the build.
WITH_LIBPMEMOBJ = (
    "apt-get install libpmemobj-dev, then build again: make build, or, where pip installed "
    "nearfar, pip install --force-reinstall --no-deps of its sources"
)


@dataclass(frozen=True)
class Refusal:
    """What a program says instead of figures; ``code`` is one of the core's."""

    code: str
    what: str
    next_step: str

    def error(self, of: str = "") -> NearfarError:
        """To be raised; ``of`` is put before what is wrong."""
        return from_native(RuntimeError(self.code, of + self.what, self.next_step, 0))


@dataclass(frozen=True)
class Answer:
    """Lines of standard output, how the program ended, and the end of what it complained of."""

    lines: list[str]
    code: int
    complaint: str

    @property
    def refusal(self) -> Refusal | None:
        """None for an answer, and for a program that died."""
        if not self.lines or not self.lines[0].startswith("error "):
            return None
        what, next_step = [*self.lines[1:], "", ""][:2]
        return Refusal(self.lines[0].removeprefix("error "), what, next_step)

    @property
    def died(self) -> bool:
        """Whether there is no answer to read."""
        return self.code != 0 or not self.lines

    @property
    def figures(self) -> dict[str, str]:
        """Lines of ``KEY VALUE``."""
        return dict(line.split(" ", 1) for line in self.lines)


def shipped(name: str) -> Path:
    """A program or library that is left out of some builds. Raises MachineError if it was."""
    path = BESIDE / name
    if not path.exists():
        raise MachineError(
            f"this nearfar was built without {name}",
            WITH_LIBPMEMOBJ,
        )
    return path


def without_preload() -> dict[str, str]:
    """Our environment, but for libraries that the user loads into us."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


def ask(command: Sequence[str], library: str = "") -> Answer:
    """Run one of our programs to its end, ``library`` being loaded into it."""
    environment = without_preload()
    if library:
        environment["LD_PRELOAD"] = library
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return Answer(done.stdout.splitlines(), done.returncode, done.stderr.strip()[-200:])


def usage_of(figures: Mapping[str, str]) -> Usage:
    """The accounts of a thread that a program prints."""
    return {
        "wall_ns": int(figures["thread_wall_ns"]),
        "cpu_ns": int(figures["thread_cpu_ns"]),
        "minor_faults": int(figures["minor_faults"]),
        "major_faults": int(figures["major_faults"]),
        "involuntary_switches": int(figures["involuntary_switches"]),
    }
