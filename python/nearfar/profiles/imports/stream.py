"""Output of STREAM (McCalpin): the best rates of its four kernels, in 10^6 bytes/s.

STREAM counts the bytes that a kernel names, not those that a write-allocate reads.
"""

from __future__ import annotations

import re
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.profiles.imports.found import Found, scalar
from nearfar.profiles.imports.numbers import RATE

TOOL = "STREAM"
_RATE = re.compile(r"^(Copy|Scale|Add|Triad):[ \t]+(\S+)", re.MULTILINE)
_KERNELS = ("Copy", "Scale", "Add", "Triad")


def recognizes(text: str) -> bool:
    """Whether it has a rate of a kernel."""
    return _RATE.search(text) is not None


def read(text: str, path: Path, nodes: tuple[int, int] | None) -> Found:
    """Read the rates. Raises BadInputError if one is absent or no rate, and if STREAM found wrong
    results."""
    found = _RATE.findall(text)
    words = dict(found)
    if len(found) > len(words):
        raise BadInputError(f"{path} has several runs of STREAM", "give the output of one run")
    absent = [kernel for kernel in _KERNELS if kernel not in words]
    if absent:
        raise BadInputError(
            f"{path} has no rate of {' and '.join(absent)}", "give what stream printed, whole"
        )
    if "Failed Validation" in text:
        raise BadInputError(f"{path}: STREAM computed wrong results", "run STREAM again")
    threads = re.search(r"Number of Threads counted = ([0-9]+)", text)
    note = f"{threads[1]} threads; as STREAM counts bytes" if threads else "as STREAM counts bytes"
    rates = {kernel: RATE.read(words[kernel], f"{path}, {kernel}") for kernel in _KERNELS}
    return Found(
        TOOL,
        {
            f"{kernel.lower()}_bandwidth_bytes_per_s": scalar("B/s", rate, note)
            for kernel, rate in rates.items()
        },
    )
