"""The latency of a link by its load, from the measured loaded latency of the memory behind it.

The device is simulated without the latency of its link at each measured load. What the measured
latency exceeds the simulated one by is the link's, half of it each way; it includes the way from
the core, if the measurement does. The result then has the measured latency at these loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.profiles.loaded_curves import curves_of
from nearfar.records.profile import Figure
from nearfar.records.shape import Origin
from nearfar.simulation.devices import Device
from nearfar.simulation.placements import Placement
from nearfar.simulation.run import Options, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nearfar.profiles.loaded_curves import Loaded
    from nearfar.records.profile import Profile

_LINE = 64
_PS = 1e-12
_REQUESTS = 40_000
_REGION = 1 << 30
#: The most that the engines take: the load is given, not limited by a core.
_WINDOW = 1024
#: A smaller part of the load that passes is a saturated device.
_PASSES = 0.98
#: Points of a curve, at most.
_POINTS = 24
#: In B/s: a stream of requests has a load.
_LEAST = 1e6
_CONSTANT, _BY_LOAD = "link_latency_ns", "link_latency_by_load_ns"


@dataclass(frozen=True)
class FittedLink:
    """``profile``: the device with the link; ``errors``: by load in B/s, simulated over measured
    latency, less one; ``left_out``: measured loads in B/s that the device does not reach."""

    profile: Profile
    errors: dict[float, float]
    left_out: list[float]


def fit_link(device: Profile, measured: Profile, name: str) -> FittedLink:
    """Fit the link of a device of commands to the loaded latencies of ``measured``.

    The curve with the most reads is taken. Raises BadInputError if the device has no link, or alone
    takes longer than the measured memory.
    """
    device.scalar("link_bandwidth_bytes_per_s")
    curves = curves_of(measured).curves
    share = max(curves)
    figures = {k: v for k, v in device.figures.items() if k not in (_CONSTANT, _BY_LOAD)}
    alone = Device.of(device.model_copy(update={"figures": figures}))
    points, left_out = [], []
    for point in _ascending(curves[share]):
        latency, bandwidth = _simulated(alone, point.bandwidth, 1 - share)
        if bandwidth < _PASSES * point.bandwidth:
            left_out.append(point.bandwidth)
        elif latency > point.latency:
            raise BadInputError(
                f"{device.name} takes {latency:.0f} ns at {point.bandwidth / 1e9:.1f} GB/s without "
                f"its link, and {measured.name} was measured with {point.latency:.0f} ns",
                "give a faster device, or the curve of the memory behind the link",
            )
        else:
            points.append([point.bandwidth, (point.latency - latency) / 2])
    if not points:
        raise BadInputError(
            f"{device.name} reaches no load that was measured of {measured.name}",
            "give a device with more channels, or a curve with lower loads",
        )
    fitted = _with_link(device, measured, name, points)
    used = [point for point in _ascending(curves[share]) if point.bandwidth not in left_out]
    return FittedLink(fitted, _errors(Device.of(fitted), used, 1 - share), left_out)


def _errors(device: Device, points: list[Loaded], write_share: float) -> dict[float, float]:
    """Simulated over measured latency, less one, by load in B/s."""
    return {
        point.bandwidth: _simulated(device, point.bandwidth, write_share)[0] / point.latency - 1
        for point in points
    }


def _ascending(curve: tuple[Loaded, ...]) -> Iterator[Loaded]:
    """Points with traffic whose loads rise, evenly thinned out; a saturated curve may bend back."""
    most = max(point.bandwidth for point in curve)
    next_from = _LEAST
    for point in sorted(curve, key=lambda p: (p.bandwidth, p.latency)):
        if point.bandwidth >= next_from:
            next_from = point.bandwidth + most / _POINTS
            yield point


def _simulated(device: Device, bandwidth: float, write_share: float) -> tuple[float, float]:
    """Mean latency of reads in ns, and bytes/s that pass, under this load."""
    from nearfar import _native

    source = _native.SyntheticSource(
        "random", _REQUESTS, _REGION, write_share, _LINE / bandwidth * 1e9, 1
    )
    outcome, _ = run(source, device, device, Placement("all-far"), Options(window=_WINDOW), "exact")
    tier = outcome["far"]
    return (
        tier["read_time_ps"] / max(tier["reads"], 1) / 1000,
        _REQUESTS * _LINE / (outcome["end_ps"] * _PS),
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
