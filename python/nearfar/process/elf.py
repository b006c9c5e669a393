"""Properties of a program file that decide whether a library can be preloaded into it.

ELF offsets follow the specification (System V ABI, gABI 4.1): class at byte 4, machine at 18,
program headers from e_phoff. A program without PT_INTERP is not started by a dynamic loader.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

from nearfar.process.program_file import find_program

_PT_INTERP = 3
_CLASS_64 = 2
_X86_64 = 62
#: Depth of scripts whose interpreter is itself a script; the kernel's limit.
_MAX_INTERPRETERS = 4


def ignores_preload(file: Path) -> str:
    """Why the loader would not preload a library into this program; empty if it would.

    A file that is executable but not readable is assumed to be a plain program.
    """
    for _ in range(_MAX_INTERPRETERS):
        try:
            head = file.read_bytes() if file.stat().st_size < 4096 else _head(file)
            privileged = _gains_privileges(file)
        except OSError:
            return ""
        if privileged:
            return f"{file} runs with raised privileges (setuid, setgid or capabilities)"
        if not head.startswith(b"#!"):
            return _elf_ignores(file, head)
        words = head[2:].split(b"\n", 1)[0].split()
        if not words:
            return ""
        file = _interpreter([word.decode(errors="replace") for word in words])
    return ""


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(4096)


def _interpreter(words: list[str]) -> Path:
    """The interpreter of a script's first line; ``/usr/bin/env NAME`` starts NAME."""
    if Path(words[0]).name == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return (find_program(named[0]) if named else None) or Path(words[0])
    return Path(words[0])


def _gains_privileges(file: Path) -> bool:
    status = file.stat()
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        return True
    if status.st_mode & stat.S_ISGID and status.st_gid != os.getgid():
        return True
    return os.getuid() != 0 and "security.capability" in os.listxattr(file)


def _elf_ignores(file: Path, head: bytes) -> str:
    if head[:4] != b"\x7fELF" or len(head) < 64:
        return ""
    (machine,) = struct.unpack_from("<H", head, 18)
    if head[4] != _CLASS_64 or machine != _X86_64:
        return f"{file} is not a program for 64-bit x86"
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    with file.open("rb") as stream:
        stream.seek(offset)
        headers = stream.read(size * count)
    kinds = {
        struct.unpack_from("<I", headers, at)[0] for at in range(0, len(headers) - 3, size or 1)
    }
    return "" if _PT_INTERP in kinds else f"{file} is linked statically"
