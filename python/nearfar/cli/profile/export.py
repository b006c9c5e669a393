"""``nearfar profile export``: a device file for the C API of the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags

Profile = Annotated[
    str, typer.Argument(metavar="PROFILE", help="Name or file of a device.", show_default=False)
]
Out = Annotated[Path | None, flags.text("--out", "FILE", "File (default: NAME.device).")]


def export(profile: Profile, out: Out = None, quiet: flags.Quiet = False) -> None:
    """Write the figures of a device profile as text, for simulators in C and C++ (nearfar/sim.h).

    The file has the figures that the exact engine uses, with timings in ns. A simulation of it is
    the same as one of the profile.

    Examples:

        nearfar profile export hbm2-2000

        nearfar profile export ./mine.toml --out mine.device
    """
    from nearfar import api
    from nearfar.report import console

    file = api.export_device(profile, out)
    if not quiet:
        console.note(f"device: {file}")
