"""Resolve code addresses to functions and source lines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nearfar.process.functions import functions_at

_PLACE = re.compile(r"(.+)\+0x([0-9a-f]+)")
#: Headers of the system and of the compiler, Rust's library, our header that reports intrinsics.
_SYSTEM_HEADER = re.compile(
    r"/usr/(local/)?(include|lib/(gcc|clang|llvm-[0-9]+))/|/rustc/[0-9a-f]+/library/"
    r"|.*/rustlib/src/rust/library/|.*/nearfar/crash/reports\.h:"
)
_ADDRESS = re.compile(r"0x[0-9a-f]+")
#: Calls that are none of the program: what calls its main function, and the libraries of C++ and
#: Rust, of which each thread that is started passes through several functions.
_OUTSIDE = re.compile(r"_start \(|\S*/ld-linux\S*\+0x|\S*/include/c\+\+/|/rustc/[0-9a-f]+/library/")


@dataclass(frozen=True)
class Call:
    """A function, and the FILE:LINE in it from which the next one is called."""

    function: str
    line: str


def source_lines(places: Iterable[str]) -> dict[str, str]:
    """FILE:LINE for each MODULE+0xOFFSET (a return address) that has debug information.

    Where the compiler inlined a function of its own headers or of the system's, such as an
    intrinsic, this is the line of the program that calls it. Others resolve to the function:
    "FUNCTION (MODULE+0xOFFSET)".
    """
    return {place: frames[0] for place, frames in source_frames(places).items()}


def source_frames(places: Iterable[str]) -> dict[str, list[str]]:
    """The same, with the lines of the program that each is inlined into, outward."""
    from nearfar.verify.inlined import inline_calls_of
    from nearfar.verify.linetable import lines_of

    wanted: dict[str, dict[str, int]] = defaultdict(dict)
    for place in places:
        if match := _PLACE.fullmatch(place):
            # One byte back from a return address lies the call, or the store itself.
            wanted[match[1]][place] = int(match[2], 16) - 1
    found: dict[str, list[str]] = {}
    for module, offsets in wanted.items():
        lines = lines_of(Path(module), offsets.values())
        calls = inline_calls_of(Path(module), lines)
        found |= {
            p: _own([lines[at], *calls.get(at, [])]) for p, at in offsets.items() if at in lines
        }
        unknown = {p: at for p, at in offsets.items() if at not in lines}
        found |= {place: [name] for place, name in _functions(module, unknown).items()}
    return found


@dataclass(frozen=True)
class Reached:
    """A place; where the program called the library or system header that it is in, or nothing;
    and the calls of the program that led there, innermost first."""

    place: str
    caller: str = ""
    calls: tuple[str, ...] = ()

    def own(self) -> str:
        """The place in the program, as far as it is known."""
        return self.caller or self.place

    def with_lines(self, known: Mapping[str, list[str]]) -> Reached:
        """The same by source lines, which :func:`source_frames` found."""
        place, caller = (known.get(at, [at])[0] for at in (self.place, self.caller))
        calls = program_calls(self.calls, known)
        if calls and not caller and is_of_system(place):  # a template that is not inlined
            caller, *calls = calls
        return Reached(place, caller, tuple(calls))


def program_calls(calls: Iterable[str], known: Mapping[str, list[str]]) -> list[str]:
    """Source lines of calls, inlined ones with the lines around them; those of the program only."""
    lines = (line for call in calls for line in known.get(call, [call]))
    return [line for line in lines if not _OUTSIDE.match(line)]


def _own(frames: list[str]) -> list[str]:
    """The lines of the program itself; if there are none, the innermost line."""
    return [frame for frame in frames if not is_of_system(frame)] or frames[:1]


def is_of_system(line: str) -> bool:
    """Whether a FILE:LINE is in a header of the system or of the compiler, or in Rust's library."""
    return bool(_SYSTEM_HEADER.match(line))


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
