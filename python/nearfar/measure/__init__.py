"""Measurements: which repeats, in which order, until when; the native core does the timing.

Importing it tells the native core where the pace of `paced:` tiers is written: in device profiles.
"""

from nearfar._native import set_pace_source


def _pace(profile: str) -> tuple[float, ...]:
    from nearfar.profiles.pacing import pace_of

    return pace_of(profile)


set_pace_source(_pace)
