"""From code addresses to source lines, by addr2line of binutils."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable

_CODE = re.compile(r"(.+)\+0x([0-9a-f]+)")


def source_lines(places: Iterable[str]) -> dict[str, str]:
    """FILE:LINE for each MODULE+0xOFFSET (a return address) that has debug information."""
    wanted: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for place in places:
        if match := _CODE.fullmatch(place):
            wanted[match[1]].append((place, int(match[2], 16)))
    found: dict[str, str] = {}
    if shutil.which("addr2line") is None:
        return found
    for module, addresses in wanted.items():
        # One byte back from a return address lies the call, or the store itself.
        done = subprocess.run(
            ["addr2line", "-e", module, *(hex(offset - 1) for _, offset in addresses)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        for (place, _), line in zip(addresses, done.stdout.splitlines(), strict=False):
            file, _, number = line.partition(" ")[0].rpartition(":")
            if file.strip("?") and number.strip("?0"):
                found[place] = f"{file}:{number}"
    return found
