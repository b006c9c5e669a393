"""Measurements: number, order and stopping rule of repeats; the native core does the timing.

Importing it registers device profiles with the native core as the source of `paced:` parameters.
"""

from nearfar._native import set_pace_source


def _pace(profile: str) -> tuple[float, ...]:
    from nearfar.profiles.pacing import pace_of

    return pace_of(profile)


set_pace_source(_pace)
