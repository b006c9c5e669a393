"""Memories by name: a device profile, or a tier of this machine as it was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.profile import Figure, Host, Profile


def check_tier(name: str) -> None:
    """Raise BadInputError for a name that is neither a profile nor a tier, NativeError for a tier
    that this machine does not have."""
    from nearfar._native import NativeError, parse_tier, tier_capacity_bytes
    from nearfar.profiles import profile_names

    try:
        parse_tier(name)
    except NativeError as error:
        raise BadInputError(
            f"{name} is neither a device profile nor a tier: {error.args[1]}",
            f"profiles are {', '.join(profile_names())}; tiers look like numa:1",
        ) from None
    tier_capacity_bytes(name)


def memory(name: str, host: Host, region_bytes: int) -> Profile:
    """A device profile by name or path; else a tier of a host, as measured."""
    from nearfar.profiles import is_profile, load_profile

    return load_profile(name) if is_profile(name) else tier_profile(host, name, region_bytes)


def tier_profile(host: Host, tier: str, region_bytes: int) -> Profile:
    """A memory of a host as a device, for a program that uses this much of it."""
    from nearfar.measure.memory import WALKS_BY_REGION, on_pages
    from nearfar.records.profile import Profile

    figures = dict(host.memories[on_pages(tier)])
    walks = {
        key.replace("_by_region", ""): _at(figures.pop(key), region_bytes)
        for key in WALKS_BY_REGION
        if key in figures
    }
    return Profile(
        name=tier,
        title=f"{tier} of this machine",
        description="What misses cost: latency, page walk, parallelism and bandwidth of a thread.",
        sources=host.sources,
        figures={**figures, **walks},
    )


def _at(curve: Figure, region_bytes: int) -> Figure:
    """The value of a curve over region sizes at one size: interpolated over the logarithm of the
    size, constant outside the measured sizes."""
    import numpy as np

    points, at = curve.points or [], math.log(max(region_bytes, 1))
    places = [math.log(place) for place, _ in points]
    ends = curve.ranges or [(value, value) for _, value in points]
    value, low, high = (
        float(np.interp(at, places, column))
        for column in ([v for _, v in points], [low for low, _ in ends], [high for _, high in ends])
    )
    scalar = {"value": value, "low": min(low, value), "high": max(high, value)}
    return curve.model_copy(update={**scalar, "x": None, "points": None, "ranges": None})
