"""Helpers of tests of libhmalloc: the built libraries, and C programs against them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIBRARIES = ROOT / "build" / "editable" / "native"
SHARED = LIBRARIES / "libhmalloc.so"
PRELOAD = LIBRARIES / "libhmalloc-preload.so"
PROGRAMS = Path(__file__).parent / "programs"


def compile_c(folder: Path, name: str, *, linked: bool = False, flags: Sequence[str] = ()) -> Path:
    """Compiles ``tests/programs/NAME.c``; ``linked`` against libhmalloc."""
    program = folder / name
    against = [f"-L{LIBRARIES}", "-lhmalloc", f"-Wl,-rpath,{LIBRARIES}"] if linked else []
    subprocess.run(
        [
            "cc",
            "-O2",
            "-g",
            "-Wall",
            "-Werror",
            "-pthread",
            f"-I{ROOT / 'include'}",
            *flags,
            str(PROGRAMS / f"{name}.c"),
            "-o",
            str(program),
            "-ldl",
            *against,
        ],
        check=True,
    )
    return program


def build_id_of(program: Path) -> str:
    """The GNU build ID of a program."""
    return str(re.findall(r"Build ID: (\w+)", _output(["readelf", "-n", str(program)]))[0])


def return_address(program: Path, function: str, callee: str) -> str:
    """The address behind the call of ``callee`` in ``function``, as in a plan."""
    text = _output(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", str(program)]
    )
    lines = [line for line in text.splitlines() if re.match(r"\s+[0-9a-f]+:", line)]
    at = next(i for i, line in enumerate(lines) if re.search(rf"call.*<{callee}(@plt)?>", line))
    return "0x" + lines[at + 1].split(":")[0].strip()


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def clean_environment() -> dict[str, str]:
    """The environment of the tests, without settings of libhmalloc."""
    return {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("NEARFAR_HMALLOC_", "HMALLOC_", "LD_PRELOAD"))
    }


def preloaded(
    *command: str | Path, settings: Mapping[str, str] | None = None, timeout: int = 600
) -> subprocess.CompletedProcess[str]:
    """Runs a command with libhmalloc-preload.so and settings such as ``NEARFAR_HMALLOC_FAR``."""
    return subprocess.run(
        [str(part) for part in command],
        env={**clean_environment(), "LD_PRELOAD": str(PRELOAD), **(settings or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
