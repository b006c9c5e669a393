"""Pace of an emulated tier, ``paced:TIER@PROFILE``, from the device profile that it names.

Delay of a thread per line: 64 B / bandwidth of one thread, if the profile has bandwidth by threads;
otherwise latency / 16, the lines that a streaming thread keeps in flight. All threads together are
limited to the device's bandwidths. Jitter is a constant of the emulator: profiles do not have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nearfar.profiles import load_profile
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    from nearfar.records.profile import Profile

#: Lines of one streaming thread on their way at once, hardware prefetching included: between the 10
#: to 16 fill buffers of a core's first level and the 48 misses of its second.
LINES_IN_FLIGHT = 16
#: Share of a delay that is exponentially distributed.
JITTER = 0.1

_READ, _WRITE = "read_bandwidth_bytes_per_s", "write_bandwidth_bytes_per_s"
_BY_THREADS = "bandwidth_by_threads_bytes_per_s"


class PaceFigures(NamedTuple):
    """In the order that the native core takes them."""

    read_line_ns: float
    write_line_ns: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    jitter: float


def pace_of(profile_name: str) -> PaceFigures:
    """The pace of a profile, by name or path.

    Raises BadInputError for an unknown one, and where it lacks latency or bandwidth of reads.
    """
    profile = load_profile(profile_name)
    read_line = _line_ns(profile, f"read_{_BY_THREADS}", "read_latency_ns")
    read = profile.scalar(_READ)
    has_latency = "write_latency_ns" in profile.figures
    write_line = _line_ns(
        profile,
        f"ntwrite_{_BY_THREADS}",
        "write_latency_ns",
        default=None if has_latency else read_line,
    )
    write = profile.scalar(_WRITE) if _WRITE in profile.figures else read
    return PaceFigures(read_line, write_line, read, write, JITTER)


def describe(profile_name: str) -> str:
    """The pace in words, for the provenance of figures."""
    pace = pace_of(profile_name)
    return (
        f"emulated slow tier, paced as {profile_name}: {pace.read_line_ns:.1f} ns a line read and "
        f"{pace.write_line_ns:.1f} ns a line written by a thread, "
        f"{pace.read_bytes_per_s / 1e9:.1f} GB/s of reads or {pace.write_bytes_per_s / 1e9:.1f} of "
        f"writes shared by all, {pace.jitter:.0%} jitter"
    )


def _line_ns(
    profile: Profile, by_threads: str, latency: str, default: float | None = None
) -> float:
    alone = dict(profile.curve(by_threads)).get(1.0) if by_threads in profile.figures else None
    if alone is not None:
        return LINE_BYTES / alone * 1e9
    if default is not None:
        return default
    return profile.scalar(latency) / LINES_IN_FLIGHT
