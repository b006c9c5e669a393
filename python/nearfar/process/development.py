"""Headers and libraries of the package, with which C and C++ programs are built.

They lie in a folder of the package, as ``cmake --install`` lays them out below a prefix. The files
for pkg-config in it are the one description of the flags.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import MachineError
from nearfar.process.helpers import NATIVE_DIR, WITH_LIBPMEMOBJ
from nearfar.records.choices import DevelopmentPackage

_FOLDER = NATIVE_DIR / "development" / "lib"
INCLUDE_DIR = NATIVE_DIR / "development" / "include"
CMAKE_DIR = _FOLDER / "cmake" / "nearfar"
PKG_CONFIG_DIR = _FOLDER / "pkgconfig"

#: Name of a package for pkg-config.
_NAMES: dict[DevelopmentPackage, str] = {
    "hmalloc": "hmalloc",
    "persist": "nearfar",
    "sim": "nearfar-sim",
}


@dataclass(frozen=True)
class BuildFlags:
    """Flags for a compiler and for linking, as a shell reads them; ``required`` are libraries of
    other projects among them."""

    cflags: str
    libs: str
    required: tuple[str, ...]


def flags_of(package: DevelopmentPackage) -> BuildFlags:
    """Return the flags of a package.

    Raises MachineError if nearfar was built without it.
    """
    described = PKG_CONFIG_DIR / f"{_NAMES[package]}.pc"
    if not described.is_file():
        raise MachineError(f"this nearfar was built without {package}", WITH_LIBPMEMOBJ)
    fields = _fields(described)
    libs = fields["Libs"].split("\0")
    if any(_FOLDER.glob(f"lib{_NAMES[package]}.so")):  # found at run time without LD_LIBRARY_PATH
        libs.append(f"-Wl,-rpath,{_FOLDER}")
    required = tuple(dict.fromkeys(re.findall(r"lib(\w+)", fields.get("Requires", ""))))
    libs += [f"-l{name}" for name in required]
    return BuildFlags(shlex.join(fields["Cflags"].split("\0")), shlex.join(libs), required)


def not_installed(required: Sequence[str]) -> list[str]:
    """Those of the libraries that the C compiler does not find; none without a compiler."""
    absent = []
    for name in required:
        file = f"lib{name}.so"
        try:
            printed = subprocess.check_output(["cc", f"-print-file-name={file}"], text=True)
        except (OSError, subprocess.CalledProcessError):
            return []
        if printed.strip() == file:  # the compiler prints the path of a file that it finds
            absent.append(file)
    return absent


def _fields(described: Path) -> dict[str, str]:
    """Fields of a file for pkg-config; the words of flags are separated by zero bytes."""
    variables = {"pcfiledir": str(described.parent)}
    fields = {}
    for line in described.read_text().splitlines():
        if found := re.match(r"(\w+)=(.*)", line):
            variables[found[1]] = str(_filled(found[2], variables))
        elif found := re.match(r"([\w.]+): *(.*)", line):
            words = [_filled(word, variables) for word in found[2].split()]
            fields[found[1]] = "\0".join(words)
    return fields


def _filled(text: str, variables: dict[str, str]) -> str:
    """Return the text with the values of variables; its folder, if any, without ``..``."""
    filled = re.sub(r"\$\{(\w+)\}", lambda name: variables[name[1]], text)
    flag, slash, folder = filled.partition("/")
    return flag + (os.path.normpath(slash + folder) if slash else "")
