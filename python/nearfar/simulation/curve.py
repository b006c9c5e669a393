"""Latency by bandwidth of one device under increasing load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nearfar.records.figures import Origin, Provenance, with_origin
from nearfar.records.simulation import CurvePoint, LoadCurve
from nearfar.simulation.placements import Placement
from nearfar.simulation.run import Options, run, settings
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    from nearfar.records.choices import EngineName
    from nearfar.simulation.controller import Controller
    from nearfar.simulation.devices import Device

_PS = 1e-12
#: Times between two requests, relative to that at full bandwidth.
_GAPS = (0.0, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
_REGION = 1 << 30
_PATTERN = "random"


def load_curve(
    device: Device,
    *,
    engine: EngineName,
    controller: Controller,
    write_share: float,
    requests: int,
    seed: int,
) -> LoadCurve:
    """Simulate random lines at rates up to the bandwidth of the device, at most 64 in flight."""
    from nearfar import _native

    options = Options(controller=controller, core="window", window=64)
    place = Placement("all-far")
    simulated = Provenance(origin=Origin.SIMULATED, statistic="simulation", samples=0, seed=seed)

    def point(gap_ns: float) -> CurvePoint:
        source = _native.SyntheticSource(_PATTERN, requests, _REGION, write_share, gap_ns, seed)
        outcome, _ = run(source, device, device, place, options, engine, accept_inexact=True)
        tier = outcome["far"]
        found = CurvePoint(
            bandwidth_bytes_per_s=requests * LINE_BYTES / (outcome["end_ps"] * _PS),
            latency_ns=tier["read_time_ps"] / max(tier["reads"], 1) / 1000,
            p99_latency_ns=tier["read_percentiles_ns"][2],
        )
        return with_origin(found, simulated)

    points = _by_load(point)
    return LoadCurve(
        device=device.name,
        engine=engine,
        pattern=_PATTERN,
        read_share=1 - write_share,
        page_policy=controller.page_policy,
        controller=settings(controller),
        requests=requests,
        points=points,
        latency_ns=points[0].latency_ns,
        bandwidth_bytes_per_s=points[-1].bandwidth_bytes_per_s,
        provenance={"latency_ns": simulated, "bandwidth_bytes_per_s": simulated},
        limits=["requests are synthetic; at most 64 are in flight"],
    )


def _by_load(point: Callable[[float], CurvePoint]) -> list[CurvePoint]:
    """Points at all gaps between requests, by ascending bandwidth. ``point`` takes a gap in ns."""
    full = point(0.0)
    min_ns = LINE_BYTES / full.bandwidth_bytes_per_s * 1e9
    points = [full, *(point(min_ns * gap) for gap in _GAPS[1:])]
    return sorted(points, key=lambda p: p.bandwidth_bytes_per_s)
