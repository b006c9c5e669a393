"""The measured host of this machine: a file that is kept for each machine, by its id.

``$XDG_DATA_HOME/nearfar/hosts/ID.toml``, by default below ``~/.local/share``. nearfar writes
this file. A damaged file, or one of another machine, is ignored: the reason is reported, and the
next measurement replaces it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import BadInputError, MachineError
from nearfar.files import write_whole
from nearfar.profiles.sheets import read_host, to_toml
from nearfar.records.profile import Host

_NEXT = "set XDG_DATA_HOME to a directory that you may write"


@dataclass(frozen=True)
class Stored:
    """The stored host, or None; and why an existing file is ignored."""

    host: Host | None
    why_not: str = ""


def path_of(machine_id: str) -> Path:
    """The file of a machine. Raises MachineError without a home directory."""
    chosen = os.environ.get("XDG_DATA_HOME", "")
    if not Path(chosen).is_absolute():  # as the XDG base directory specification demands
        try:
            chosen = str(Path.home() / ".local" / "share")
        except RuntimeError:
            raise MachineError("the user has no home directory", _NEXT) from None
    return Path(chosen) / "nearfar" / "hosts" / f"{machine_id}.toml"


def read(machine_id: str) -> Stored:
    """The host that was stored for a machine."""
    try:
        path = path_of(machine_id)
        if not path.exists():
            return Stored(None)
        host = read_host(path)
    except MachineError as error:
        return Stored(None, error.what)
    except OSError as error:
        return Stored(None, f"{path} cannot be read: {error.strerror}")
    except BadInputError as error:
        return Stored(None, error.what)
    if host.machine != machine_id or host.measured is None:
        return Stored(None, f"{path} is not a measurement of this machine")
    return Stored(host)


def write(host: Host, machine_id: str) -> Path:
    """Store a host, whole or not at all. Raises MachineError if it cannot be written."""
    path = path_of(machine_id)
    own = path.with_name(f"{path.name}.{os.getpid()}")  # two processes may store at the same time
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(own, to_toml(host), _NEXT)
        own.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            own.unlink(missing_ok=True)
        raise MachineError(f"cannot write {path}: {error.strerror}", _NEXT) from None
    return path
