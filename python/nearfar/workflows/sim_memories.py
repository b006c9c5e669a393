"""The memories of a simulation: device profiles, or measured tiers of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.profiles import load_profile
from nearfar.workflows.memories import is_profile, tier_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.measure.progress import ProgressSource
    from nearfar.records.profile import Figure, Profile

#: By figure of a simulated device: the kernel whose bandwidth with one thread is used.
_KERNELS = {"read_bandwidth_bytes_per_s": "read", "write_bandwidth_bytes_per_s": "ntwrite"}


def load(names: Sequence[str], progress: ProgressSource) -> list[Profile]:
    """Load the memories. A tier of this machine is measured unless its figures are stored.

    Raises BadInputError for an unknown name, NativeError for a tier that this machine lacks.
    """
    from nearfar._native import tier_capacity_bytes
    from nearfar.workflows import calibrating, host_here

    tiers = [name for name in names if _is_tier(name)]
    if not tiers:
        return [load_profile(name) for name in names]
    for tier in tiers:
        tier_capacity_bytes(tier)
    with calibrating.open_session(progress) as session:
        host = host_here.host_for(host_here.HostChoice(), session, tiers)
    return [
        _device(tier_profile(host, name, 0)) if name in tiers else load_profile(name)
        for name in names
    ]


def _is_tier(name: str) -> bool:
    from nearfar._native import NativeError, parse_tier

    if is_profile(name):
        return False
    try:
        parse_tier(name)
    except NativeError:
        return False
    return True


def _device(tier: Profile) -> Profile:
    """A measured tier, with the figures that a simulated device requires in addition."""
    read = tier.figure("read_latency_ns")
    added = {"write_latency_ns": _noted(read, "as that of a read: a store fetches its line")}
    for key, kernel in _KERNELS.items():
        alone = tier.figure(f"{kernel}_bandwidth_by_threads_bytes_per_s")
        scalar = {"value": tier.bandwidth_alone(kernel), "x": None, "points": None, "ranges": None}
        added[key] = _noted(alone.model_copy(update=scalar), "of one thread")
    return tier.model_copy(update={"figures": {**added, **tier.figures}})


def _noted(figure: Figure, note: str) -> Figure:
    return figure.model_copy(
        update={"note": "; ".join(filter(None, (figure.note, note))), "confidence": "B"}
    )
