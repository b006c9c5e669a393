"""The memories of a simulation: device profiles, or measured tiers of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.profiles import is_profile, load_profile
from nearfar.workflows.memories import tier_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.measure.progress import ProgressSource
    from nearfar.records.profile import Figure, Profile

#: The bandwidths of a simulated device. Each is that of one thread in the named kernel.
_KERNELS = {"read_bandwidth_bytes_per_s": "read", "write_bandwidth_bytes_per_s": "ntwrite"}

_MIXES = "bandwidth_by_read_share_bytes_per_s"


def load(names: Sequence[str], progress: ProgressSource) -> list[Profile]:
    """Load the memories. A tier of this machine is measured unless its figures are stored.

    Raises BadInputError for an unknown name, NativeError for a tier that this machine lacks.
    """
    from nearfar._native import tier_capacity_bytes
    from nearfar.workflows import host_here
    from nearfar.workflows.recording import open_session

    tiers = [name for name in names if _is_tier(name)]
    if not tiers:
        return [_device(load_profile(name)) for name in names]
    for tier in tiers:
        tier_capacity_bytes(tier)
    with open_session(progress) as session:
        host = host_here.host_for(host_here.HostChoice(), session, tiers)
    return [
        _device(_alone(tier_profile(host, name, 0)) if name in tiers else load_profile(name))
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


def _device(profile: Profile) -> Profile:
    """Add the figures of writes that a profile without command timings lacks.

    MLC measures writes only mixed with reads. The write latency is that of a read, and the write
    bandwidth that of the mix with the lowest fraction of reads.
    """
    if "read_latency_ns" not in profile.figures:
        return profile  # has command timings
    read = profile.figure("read_latency_ns")
    added = {"write_latency_ns": _noted(read, "as that of a read: a store fetches its line")}
    if (mixes := profile.figures.get(_MIXES)) is not None:
        share, rate = min(profile.curve(_MIXES))
        note = f"of reads and writes together, {share:.0%} of them reads"
        added["write_bandwidth_bytes_per_s"] = _noted(_scalar(mixes, rate), note)
    return profile.model_copy(update={"figures": {**added, **profile.figures}})


def _alone(tier: Profile) -> Profile:
    """A measured tier, with the bandwidths of one thread."""
    added = {}
    for key, kernel in _KERNELS.items():
        alone = tier.figure(f"{kernel}_bandwidth_by_threads_bytes_per_s")
        added[key] = _noted(_scalar(alone, tier.bandwidth_alone(kernel)), "of one thread")
    return tier.model_copy(update={"figures": {**added, **tier.figures}})


def _scalar(curve: Figure, value: float | None) -> Figure:
    return curve.model_copy(update={"value": value, "x": None, "points": None, "ranges": None})


def _noted(figure: Figure, note: str) -> Figure:
    return figure.model_copy(
        update={"note": "; ".join(filter(None, (figure.note, note))), "confidence": "B"}
    )
