"""Fit the latency of a link, by load, to measured loaded latencies of the memory behind it.

The device is simulated at each measured load without the latency of its link. The one-way latency
of the link is half of the difference between measured and simulated latency. It includes the path
from core to link if the measurement does. The fitted device has the measured latency at these
loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.profiles.loaded_curves import curves_of
from nearfar.records.figures import Origin
from nearfar.records.profile import Figure
from nearfar.simulation.devices import Device
from nearfar.simulation.placements import Placement
from nearfar.simulation.run import Options, run
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nearfar.profiles.loaded_curves import Loaded
    from nearfar.records.profile import Profile

_PS = 1e-12
_REQUESTS = 40_000
_REGION = 1 << 30
#: Maximum of the engines, so that the core does not limit the load.
_WINDOW = 1024
#: Minimum of achieved over requested load. Below, the device is saturated.
_MIN_ACHIEVED = 0.98
#: Maximum number of points of a curve.
_MAX_POINTS = 24
#: Minimum load in B/s.
_MIN_LOAD = 1e6
_CONSTANT, _BY_LOAD = "link_latency_ns", "link_latency_by_load_ns"


@dataclass(frozen=True)
class FittedLink:
    """A device with a fitted link.

    ``errors``: relative error of the simulated latency, by load in B/s. ``left_out``: measured
    loads in B/s that the device does not reach.
    """

    profile: Profile
    errors: dict[float, float]
    left_out: list[float]


def fit_link(device: Profile, measured: Profile, name: str) -> FittedLink:
    """Fit the link of a device with command timings to the loaded latencies of ``measured``.

    Uses the curve with the highest read share. Raises BadInputError if the device has no link, or
    if its latency without the link exceeds the measured one.
    """
    device.scalar("link_bandwidth_bytes_per_s")
    curves = curves_of(measured).curves
    share = max(curves)
    figures = {k: v for k, v in device.figures.items() if k not in (_CONSTANT, _BY_LOAD)}
    alone = Device.of(device.model_copy(update={"figures": figures}))
    points, left_out = [], []
    for point in _ascending(curves[share]):
        latency, bandwidth = _simulated(alone, point.bandwidth, 1 - share)
        if bandwidth < _MIN_ACHIEVED * point.bandwidth:
            left_out.append(point.bandwidth)
        elif latency > point.latency:
            raise BadInputError(
                f"{device.name} without its link takes {latency:.0f} ns at "
                f"{point.bandwidth / 1e9:.1f} GB/s, longer than {point.latency:.0f} ns as measured "
                f"of {measured.name}",
                "give a faster device, or the curve of the memory behind the link",
            )
        else:
            points.append([point.bandwidth, (point.latency - latency) / 2])
    if not points:
        raise BadInputError(
            f"{device.name} reaches none of the measured loads of {measured.name}",
            "give a device with more channels, or a curve with lower loads",
        )
    fitted = _with_link(device, measured, name, points)
    used = [point for point in _ascending(curves[share]) if point.bandwidth not in left_out]
    return FittedLink(fitted, _errors(Device.of(fitted), used, 1 - share), left_out)


def _errors(device: Device, points: list[Loaded], write_share: float) -> dict[float, float]:
    """Relative error of the simulated latency, by load in B/s."""
    return {
        point.bandwidth: _simulated(device, point.bandwidth, write_share)[0] / point.latency - 1
        for point in points
    }


def _ascending(curve: tuple[Loaded, ...]) -> Iterator[Loaded]:
    """At most _MAX_POINTS points, by ascending load. A saturated curve may bend back."""
    most = max(point.bandwidth for point in curve)
    next_from = _MIN_LOAD
    for point in sorted(curve, key=lambda p: (p.bandwidth, p.latency)):
        if point.bandwidth >= next_from:
            next_from = point.bandwidth + most / _MAX_POINTS
            yield point


def _simulated(device: Device, bandwidth: float, write_share: float) -> tuple[float, float]:
    """Mean read latency in ns and achieved bandwidth in B/s at this load."""
    from nearfar import _native

    source = _native.SyntheticSource(
        "random", _REQUESTS, _REGION, write_share, LINE_BYTES / bandwidth * 1e9, 1
    )
    outcome, _ = run(source, device, device, Placement("all-far"), Options(window=_WINDOW), "exact")
    tier = outcome["far"]
    return (
        tier["read_time_ps"] / max(tier["reads"], 1) / 1000,
        _REQUESTS * LINE_BYTES / (outcome["end_ps"] * _PS),
    )


def _with_link(device: Profile, measured: Profile, name: str, points: list[list[float]]) -> Profile:
    figure = Figure(
        unit="ns",
        x=["bandwidth_bytes_per_s"],
        points=points,
        source="link",
        confidence="C",
        origin=Origin.SIMULATED,
        note="one way, at a load of both directions",
    )
    figures = {k: v for k, v in device.figures.items() if k != _CONSTANT}
    text = f"half of the loaded latency of {measured.name} less that of {device.name} simulated"
    return device.model_copy(
        update={
            "name": name,
            "title": f"{device.title}, with the link of {measured.name}",
            "sources": {**device.sources, "link": text},
            "figures": {**figures, _BY_LOAD: figure},
        }
    )
