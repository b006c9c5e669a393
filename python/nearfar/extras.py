"""Optional packages, by the extra of nearfar that installs them."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from nearfar.errors import MachineError

#: Modules of each extra; ``pyproject.toml`` has the packages that contain them.
EXTRAS = {
    "charts": ("altair", "vl_convert"),
    "parquet": ("polars",),
    "cluster": ("distributed",),
}


def missing(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra] if find_spec(name) is None]


def how_to_install(extra: str) -> str:
    """The command that installs an extra into this Python."""
    return f"{sys.executable} -m pip install 'nearfar[{extra}]'"


def require(extra: str, what: str) -> None:
    """Raise MachineError if the extra is not installed; ``what`` names the part that needs it."""
    absent = missing(extra)
    if absent:
        names = " and ".join(absent) + (", which is" if len(absent) == 1 else ", which are")
        raise MachineError(f"{what} needs {names} not installed", how_to_install(extra))
