"""Shipped device profiles and hosts, and those of users, by name or by path.

The data is next to this file in ``devices/`` and ``hosts/``, one TOML file a name. The host
``this`` is what was measured and stored on this machine (``stored_host``), or, before that, what
the machine reports. In ``published/`` are tables that others printed, by which models are judged.
"""

from __future__ import annotations

import difflib
import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nearfar.errors import BadInputError
from nearfar.records.choices import DEFAULT_TIER

if TYPE_CHECKING:
    from nearfar.records.profile import Host, Profile

#: The host we run on.
THIS = "this"


def profile_names() -> list[str]:
    """Names of the shipped device profiles."""
    return _names("devices")


def is_profile(name: str) -> bool:
    """Whether a memory is a device profile, by name or path; else it is a tier."""
    return name in profile_names() or (_is_path(name) and not _is_tier(name))


def host_names() -> list[str]:
    """Names of the shipped hosts, and ``this``."""
    return [*_names("hosts"), THIS]


def load_profile(name_or_path: str | Path) -> Profile:
    """A device profile. Raises BadInputError for an unknown name and for a damaged file."""
    from nearfar.profiles.sheets import read_profile

    return read_profile(_locate(name_or_path, "devices", "device profile", profile_names()))


def load_host(name_or_path: str | Path) -> Host:
    """A host. Raises BadInputError for an unknown name and for a damaged file."""
    from nearfar.profiles import stored_host
    from nearfar.profiles.sheets import read_host
    from nearfar.profiles.this_host import this_host

    if str(name_or_path) == THIS:
        reported = this_host()
        return stored_host.read(reported.machine or "").host or reported
    return read_host(_locate(name_or_path, "hosts", "host", host_names()))


def shipped_file(which: Literal["devices", "hosts"], name: str) -> Path:
    """The file of a shipped name."""
    return _folder(which) / f"{name}.toml"


def published_table(name: str) -> Path:
    """The CSV file of a published table that is shipped."""
    return _folder("published") / f"{name}.csv"


def _folder(which: str) -> Path:
    return Path(str(files(__name__) / which))


def _names(which: str) -> list[str]:
    return sorted(file.stem for file in _folder(which).glob("*.toml"))


def _is_path(name: str | Path) -> bool:
    """Whether a name that is not shipped is a path: it looks like one, or is a file here."""
    path = Path(name)
    is_file = os.path.isfile(path)  # noqa: PTH113 - False if the name is too long for a file
    return path.suffix == ".toml" or len(path.parts) > 1 or is_file


def _is_tier(name: str) -> bool:
    """Whether a name has the form of a tier, even if the tier is not valid."""
    kind, _, _ = name.partition("/")
    return ":" in kind or name.partition(",")[0] == DEFAULT_TIER


def _locate(wanted: str | Path, which: str, what: str, names: list[str]) -> Path:
    """The file of a shipped name, or the path itself."""
    if str(wanted) in names:
        return _folder(which) / f"{wanted}.toml"
    if _is_path(wanted):
        return Path(wanted)
    near = difflib.get_close_matches(str(wanted), names, n=3)
    known = ", ".join(near or names)
    raise BadInputError(
        f"there is no {what} {wanted}",
        f"{'did you mean' if near else 'name one of'}: {known}; or give the path of a .toml file",
    )
