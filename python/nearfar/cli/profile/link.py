"""``nearfar profile link``: a simulated memory behind a link of measured latency."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags

DeviceName = Annotated[
    str,
    typer.Argument(
        metavar="DEVICE", help="Profile of a simulated device with a link.", show_default=False
    ),
]
Measured = Annotated[
    str,
    typer.Argument(
        metavar="MEASURED", help="Profile with measured loaded latencies.", show_default=False
    ),
]
Name = Annotated[
    str | None,
    flags.text("--name", "NAME", "Name of the profile (default: DEVICE-MEASURED)."),
]
Out = Annotated[
    Path | None, flags.text("--out", "FILE", "File of the profile (default: NAME.toml).")
]


def link(
    device: DeviceName,
    measured: Measured,
    name: Name = None,
    out: Out = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Give the link of a simulated device the latency that was measured at each load.

    DEVICE is simulated without its link, at each load of the curve of MEASURED (from `probe` or
    `profile import`). The difference to the measured latency is the latency of the link at this
    load: the new profile has it as `link_latency_by_load_ns`, and `nearfar sim` uses it. Loads that
    the device does not reach are left out.

    Example:

        nearfar profile link cxl-ddr5 expander.toml --name my-expander
    """
    from nearfar import api
    from nearfar.profiles import load_profile
    from nearfar.report import console
    from nearfar.report.terminal.sheet import sheet

    chosen, curve = load_profile(device), load_profile(measured)
    named = name or f"{chosen.name}-{curve.name}"
    fitted = api.fit_link(chosen, curve, named)
    file = api.write_profile(fitted.profile, out or Path(f"{named}.toml"))
    profile = fitted.profile
    console.show(sheet(profile), profile.model_dump_json(indent=1, exclude_none=True), json)
    if quiet:
        return
    worst = max(map(abs, fitted.errors.values()))
    console.note(
        f"at {len(fitted.errors)} measured loads the simulated latency is within {worst:.1%} of "
        "the measured one"
    )
    if fitted.left_out:
        console.note(
            f"{chosen.name} does not reach {len(fitted.left_out)} measured loads, from "
            f"{min(fitted.left_out) / 1e9:.1f} GB/s on"
        )
    console.note(f"profile: {file}")
