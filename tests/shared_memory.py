"""Files that a run of the tool leaves in /dev/shm, on a machine where other programs use it too."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path("/dev/shm")
#: ``os::create_named``: the process that made the file, and a number.
_OURS = re.compile(r"\.nearfar-(\d+)-")


def files() -> set[Path]:
    """All files that some process of nearfar made and that have a name now."""
    return {path for path in FOLDER.iterdir() if _OURS.match(path.name)}


def left_behind(before: set[Path]) -> set[Path]:
    """Those that are new since ``before`` and whose process has ended."""
    return {path for path in files() - before if not Path("/proc", _process(path)).exists()}


def _process(path: Path) -> str:
    found = _OURS.match(path.name)
    assert found
    return found[1]
