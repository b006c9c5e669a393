"""Parse sizes, times and CPU lists as users write them; format figures for output.

Base units inside the program: bytes, seconds (nanoseconds where a name says so), bytes per second.
"""

from __future__ import annotations

import re

from nearfar.errors import BadInputError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

#: Size of the smallest pages of x86-64.
PAGE_BYTES = 4096
#: Size of a cache line of x86-64.
LINE_BYTES = 64

_FACTORS = {
    "": 1,
    "b": 1,
    "k": KIB,
    "m": MIB,
    "g": GIB,
    "t": 1 << 40,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_SIZE = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")
_TIME_FACTORS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}


def parse_size(text: str) -> int:
    """Parse a size such as ``64KiB``, ``2GB`` or ``1.5g``; a bare K, M, G or T is binary.

    Raises BadInputError for anything else, for zero, for negatives and for fractions of a byte.
    """
    match = _SIZE.fullmatch(text)
    factor = _FACTORS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise BadInputError(f"'{text}' is not a size", "write it like 64KiB, 2GB or 1.5GiB")
    size = float(match[1]) * factor if "." in match[1] else int(match[1]) * factor
    if size >= 1 << 62:
        raise BadInputError(f"{text} is more than any memory holds", "write it like 64KiB or 2GB")
    if size <= 0 or size != int(size):
        raise BadInputError(
            f"a size must be a positive whole number of bytes, and '{text}' is not",
            "write it like 64KiB, 2GB or 1.5GiB",
        )
    return int(size)


#: Longest accepted time; a longer one is a mistake in the unit.
LONGEST_S = 30 * 86400.0


def parse_seconds(text: str) -> float:
    """Parse a time such as ``5``, ``500ms`` or ``2min`` to seconds.

    Raises BadInputError unless positive and at most LONGEST_S.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text)
    factor = _TIME_FACTORS.get(match[2]) if match else None
    if match is None or factor is None:
        raise BadInputError(f"'{text}' is not a time", "write it like 5, 500ms or 2min")
    if float(match[1]) == 0:
        raise BadInputError(f"'{text}' is not a positive time", "write it like 5, 500ms or 2min")
    seconds = float(match[1]) * factor
    if seconds > LONGEST_S:
        raise BadInputError(f"{text} is longer than 30 days", "write it like 5, 500ms or 2min")
    return seconds


def parse_share(text: str) -> float:
    """Parse a fraction such as ``5%`` or ``0.05``; raises BadInputError unless it is at least 0."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)\s*", text)
    if match is None:
        raise BadInputError(f"'{text}' is not a share", "write it like 5% or 0.05")
    return float(match[1]) / (100 if match[2] else 1)


def parse_cpus(text: str) -> list[int]:
    """Parse a CPU list such as ``0-3,8`` to sorted distinct numbers; raises BadInputError."""
    cpus: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)(?:-([0-9]+))?\s*", part)
        last = int(match[2] or match[1]) if match else -1
        if match is None or last < int(match[1]) or last > 65535:
            raise BadInputError(f"'{text}' is not a list of processors", "write it like 0-3,8")
        cpus.extend(cpu for cpu in range(int(match[1]), last + 1) if cpu not in cpus)
    return cpus


def _scaled(value: float, steps: list[tuple[float, str]]) -> str:
    for factor, unit in steps:
        if abs(value) >= factor:
            return f"{_three_digits(value / factor)} {unit}"
    factor, unit = steps[-1]
    return f"{_three_digits(value / factor)} {unit}"


def _three_digits(value: float) -> str:
    """At least three digits, without an exponent for values that round up to a thousand."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def format_size(size_bytes: float) -> str:
    """Format bytes in binary units: ``64 KiB``, ``1.5 GiB``."""
    steps = [(GIB * KIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")]
    for factor, unit in steps:
        if size_bytes >= factor:
            return f"{round(size_bytes / factor, 1):g} {unit}"
    return f"{size_bytes:g} B"


def format_bandwidth(bytes_per_s: float) -> str:
    """Format a bandwidth in decimal units, as data sheets do: ``12.3 GB/s``."""
    return _scaled(bytes_per_s, [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")])


def format_energy(joules: float) -> str:
    """Format an energy: ``3.55 mJ``."""
    return _scaled(joules, [(1, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"), (1e-12, "pJ")])


_DAY_S = 86_400


def format_time(seconds: float) -> str:
    """Format a time: ``12.3 ns`` to ``4.5 s``, and days from two on."""
    if seconds >= 2 * _DAY_S:
        days = seconds / _DAY_S
        return f"{days:.3g} days" if days < 1e3 else f"{days:,.0f} days"
    if seconds >= 1e3:
        return f"{seconds:.0f} s"
    return _scaled(seconds, [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])
