"""A device as a text file, for programs that read no profiles (docs/formats/device.md).

The native core reads it (``native/sim/device_file.hpp``). Numbers are written so that they are read
back as the same ones: a simulation of the file equals one of the profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.simulation.devices import Device, resolve

if TYPE_CHECKING:
    from nearfar.records.profile import Profile


def device_text(profile: Profile) -> str:
    """The text of the file. Raises BadInputError for a profile that cannot be simulated."""
    Device.of(profile)  # the core checks the figures
    kind, figures = resolve(profile)
    lines = [f"{name} {float(value)!r}" for name, value in figures.items()]
    head = ["nearfar-device 1", f"name {' '.join(profile.name.split())}", f"kind {kind}"]
    return "\n".join([*head, *lines]) + "\n"
