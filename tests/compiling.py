"""C programs of tests, compiled where they are wanted."""

from __future__ import annotations

import subprocess
from pathlib import Path


def compile_c(folder: Path, name: str, text: str, *flags: str) -> Path:
    """``folder/name``, of a source in the same folder."""
    source = folder / f"{name}.c"
    source.write_text(text)
    program = folder / name
    subprocess.run(["gcc", "-g", "-O1", str(source), "-o", str(program), *flags], check=True)
    return program
