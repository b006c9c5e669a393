"""What tests of libhmalloc share: the libraries as they were built, and C programs against them."""

from __future__ import annotations

import os
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
