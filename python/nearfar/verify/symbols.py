"""Resolve code addresses to functions and source lines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nearfar.process.functions import functions_at

_PLACE = re.compile(r"(.+)\+0x([0-9a-f]+)")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True)
class Call:
    """A function, and the FILE:LINE in it from which the next one is called."""

    function: str
    line: str


def source_lines(places: Iterable[str]) -> dict[str, str]:
    """FILE:LINE for each MODULE+0xOFFSET (a return address) that has debug information.

    Others resolve to the function: "FUNCTION (MODULE+0xOFFSET)".
    """
    from nearfar.verify.linetable import lines_of

    wanted: dict[str, dict[str, int]] = defaultdict(dict)
    for place in places:
        if match := _PLACE.fullmatch(place):
            # One byte back from a return address lies the call, or the store itself.
            wanted[match[1]][place] = int(match[2], 16) - 1
    found: dict[str, str] = {}
    for module, offsets in wanted.items():
        lines = lines_of(Path(module), offsets.values())
        found |= {place: lines[at] for place, at in offsets.items() if at in lines}
        found |= _functions(module, {p: at for p, at in offsets.items() if at not in lines})
    return found


def _functions(module: str, offsets: dict[str, int]) -> dict[str, str]:
    """Names of functions, by the symbols of the module."""
    known = functions_at(Path(module), offsets.values()) if offsets else {}
    short = Path(module).name
    return {
        place: f"{known[offset].name} ({short}+{offset + 1:#x})"
        for place, offset in offsets.items()
        if offset in known
    }


def inline_calls(places: Iterable[str]) -> dict[str, list[Call]]:
    """For each MODULE+0xOFFSET (a return address) with debug information, the call there, and the
    calls of the functions that it is inlined into, outwards."""
    wanted: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for place in places:
        if match := _PLACE.fullmatch(place):
            wanted[match[1]].append((place, int(match[2], 16)))
    if shutil.which("addr2line") is None:
        return {}
    found: dict[str, list[Call]] = {}
    for module, addresses in wanted.items():
        # One byte before a return address lies the call, or the store itself.
        done = subprocess.run(
            [
                "addr2line",
                "-a",
                "-i",
                "-f",
                "-C",
                "-e",
                module,
                *(hex(offset - 1) for _, offset in addresses),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        for (place, _), calls in zip(addresses, _parsed(done.stdout), strict=False):
            if calls:
                found[place] = calls
    return found


def _parsed(output: str) -> list[list[Call]]:
    """Of each address: a line with the address, then two for each call."""
    parsed: list[list[Call]] = []
    function = ""
    for line in output.splitlines():
        if not function and _ADDRESS.fullmatch(line):
            parsed.append([])
        elif not function:
            function = line
        else:
            file, _, number = line.partition(" (discriminator")[0].rpartition(":")
            if parsed and file.strip("?") and number.strip("?0"):
                parsed[-1].append(Call(function, f"{file}:{number}"))
            function = ""
    return parsed
