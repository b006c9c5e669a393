"""The file of a program, by the name that a shell would start."""

from __future__ import annotations

import shutil
from pathlib import Path

from nearfar.errors import BadInputError

_NAME_ONE = "name one after --, as in a shell"


def require_name(program: str) -> None:
    """Raise BadInputError if the name of the program is empty."""
    if not program:
        raise BadInputError("the name of the program is empty", _NAME_ONE)


def find_program(program: str) -> Path | None:
    """The file that a shell would start under this name; None if there is none."""
    found = shutil.which(program)
    return Path(found) if found and Path(found).is_file() else None


def program_file(program: str) -> Path:
    """The file to start. Raises BadInputError with the reason if it cannot be started."""
    require_name(program)
    found = find_program(program)
    if found:
        return found
    path = Path(program)
    if path.is_dir():
        raise BadInputError(f"{program} is a folder", "name a program in it")
    if path.exists():
        raise BadInputError(
            f"{program} is not executable",
            f"chmod +x {program}, or name what runs it: -- python3 {program}",
        )
    raise BadInputError(f"no program {program}", _NAME_ONE)
