"""Output of STREAM (McCalpin): the best rates of its four kernels, in 10^6 bytes/s.

STREAM counts the bytes that a kernel names, not those that a write-allocate reads.
"""

from __future__ import annotations

import re
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.profiles.imports.found import Found, scalar

TOOL = "STREAM"
_RATE = re.compile(r"^(Copy|Scale|Add|Triad):\s+([\d.]+)", re.MULTILINE)
_BYTES_PER_S = 1e6


def recognizes(text: str) -> bool:
    """Whether it has a rate of a kernel."""
    return _RATE.search(text) is not None


def read(text: str, path: Path, nodes: tuple[int, int]) -> Found:
    """Read the rates. Raises BadInputError without one, and if STREAM found wrong results."""
    rates = {kernel.lower(): float(rate) for kernel, rate in _RATE.findall(text)}
    if not rates or not all(rates.values()):
        raise BadInputError(f"{path} has no rates of STREAM", "give what stream printed, whole")
    if "Failed Validation" in text:
        raise BadInputError(f"{path}: STREAM computed wrong results", "run STREAM again")
    threads = re.search(r"Number of Threads counted = (\d+)", text)
    note = f"{threads[1]} threads; as STREAM counts bytes" if threads else "as STREAM counts bytes"
    return Found(
        TOOL,
        {
            f"{kernel}_bandwidth_bytes_per_s": scalar("B/s", rate * _BYTES_PER_S, note)
            for kernel, rate in rates.items()
        },
    )
