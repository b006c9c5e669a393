"""Standard input for a program that runs several times: a file is read from its start each time."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StandardInput:
    """The file that each run opens, and what it is, in words; empty: there is none."""

    path: str = os.devnull
    words: str = ""

    @property
    def role(self) -> str:
        """Words for what a run reads, such as "reading FILE"."""
        if self.path != os.devnull:
            return f"reading {self.words}"
        return "without standard input" + (f" ({self.words})" if self.words else "")


def of_this_process() -> StandardInput:
    """The standard input of this process, as far as it can be read several times."""
    own = f"/proc/{os.getpid()}/fd/0"  # not self: a child has closed its own by then
    try:
        mode = os.fstat(0).st_mode
        if stat.S_ISREG(mode):
            return StandardInput(own, str(Path(own).readlink()))
    except OSError:  # closed
        return StandardInput()
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return StandardInput(words="a pipe, which is not passed on; a file is (< FILE)")
    return StandardInput()
