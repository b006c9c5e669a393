"""Simulate memories; fit and export simulated devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.api._common import public
from nearfar.measure.progress import silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nearfar.measure.progress import ProgressSource
    from nearfar.records.profile import Profile
    from nearfar.records.simulation import CountsSimulation, LoadCurve, Simulation
    from nearfar.simulation.link_fit import FittedLink
    from nearfar.workflows.simulating import SimRequest


@public
def simulate(
    request: SimRequest,
    *,
    given: Mapping[str, str] | None = None,
    progress: ProgressSource = silent,
) -> Simulation | CountsSimulation | LoadCurve:
    """Simulate a program on two memories: from a trace, from counts, or a synthetic stream.

    A memory is a device profile, or a tier of this machine (``dram``), measured once. ``given``:
    the fields that the caller set, each with the name that error messages use for it; default:
    fields that differ from their defaults. Raises BadInputError for a field without effect.
    """
    from nearfar.workflows import simulating

    return simulating.simulate(request, given, progress)


@public
def fit_link(device: Profile, measured: Profile, name: str) -> FittedLink:
    """Fit the link of a simulated device to the loaded latencies of ``measured``.

    Raises BadInputError if the device has no link, or if its latency without the link exceeds a
    measured one.
    """
    from nearfar.simulation.link_fit import fit_link

    return fit_link(device, measured, name)


@public
def export_device(name_or_path: str, file: Path | None = None) -> Path:
    """Write the figures of a device profile to a new file that the C API for co-simulation reads.

    ``file``: by default NAME.device. Returns its path. Raises BadInputError if it exists, or if the
    profile has too few figures to be simulated.
    """
    from nearfar.profiles import load_profile
    from nearfar.workflows import profile_files

    profile = load_profile(name_or_path)
    return profile_files.export_device(profile, file or Path(f"{profile.name}.device"))
