"""Write device files: text files for programs that do not read profiles (docs/formats/device.md).

The native core reads them (``native/sim/device_file.hpp``). Numbers are written with full
precision: simulations of the file and of the profile have equal results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.simulation.devices import Device, resolve

if TYPE_CHECKING:
    from nearfar.records.profile import Profile


def device_text(profile: Profile) -> str:
    """The text of a device file. Raises BadInputError for a profile that cannot be simulated."""
    Device.of(profile)  # the core checks the figures
    kind, figures = resolve(profile)
    lines = [f"{name} {float(value)!r}" for name, value in figures.items()]
    head = ["nearfar-device 1", f"name {' '.join(profile.name.split())}", f"kind {kind}"]
    return "\n".join([*head, *lines]) + "\n"
