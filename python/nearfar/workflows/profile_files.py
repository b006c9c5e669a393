"""Profiles made from outputs of other tools, and written as files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.choices import OtherTool
    from nearfar.records.profile import Profile


def import_profile(
    files: Sequence[Path], name: str, tool: OtherTool | None, nodes: str | None
) -> Profile:
    """Read outputs of other tools. ``nodes``: of processor and memory, such as ``0:1``; None if the
    files have one pair."""
    from nearfar.profiles.imports import import_profile

    pair = re.fullmatch(r"(\d{1,4}):(\d{1,4})", nodes or "0:0", re.ASCII)
    if pair is None:
        raise BadInputError(
            f"--nodes {nodes} is not a pair of nodes", "give processor and memory: --nodes 0:1"
        )
    if not re.fullmatch(r"[\w.+-]+", name):
        raise BadInputError(
            f"{name!r} is not a name for a profile",
            "use letters, digits, dots and hyphens: --name NAME",
        )
    return import_profile(files, name, tool, (int(pair[1]), int(pair[2])) if nodes else None)


def write_new_profile(profile: Profile, file: Path) -> Path:
    """Write a profile to a new file, and return its path."""
    from nearfar.profiles.sheets import write_profile

    _require_new(file)
    write_profile(profile, file)
    return file


def export_device(profile: Profile, file: Path) -> Path:
    """Write a profile to a new file as the C API reads it, and return the path of the file."""
    from nearfar.files import write_whole
    from nearfar.simulation.device_file import device_text

    _require_new(file)
    write_whole(file, device_text(profile), "name another file with --out")
    return file


def _require_new(file: Path) -> None:
    if file.exists():
        raise BadInputError(f"{file} exists", "name another file with --out, or remove it")
