"""Runs a program with the recorder loaded into it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.measure.beside import shipped

RECORDER = "libnearfar-crash-recorder.so"


def record(program: Sequence[str], log: Path, recorder: str) -> int:
    """Run a program to its end and write what it did to ``log``; returns its exit code.

    libpmem is told that the file is persistent memory, or it would call msync instead of flushing.
    """
    library = str(shipped(RECORDER))
    earlier = os.environ.get("LD_PRELOAD", "")
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{library} {earlier}".strip(),
        "NEARFAR_CRASH_LOG": str(log),
        "NEARFAR_CRASH_RECORDER": recorder,
        "PMEM_IS_PMEM_FORCE": "1",
    }
    try:
        done = subprocess.run(program, env=environment, stdout=2, check=False)
    except OSError as error:
        raise BadInputError(
            f"cannot run {program[0]}: {error.strerror}", "name a program after --"
        ) from None
    return done.returncode
