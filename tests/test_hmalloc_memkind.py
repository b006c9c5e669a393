"""memkind's interface for kinds in files, by <memkind.h> of libhmalloc."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hmalloc_build import ROOT, clean_environment, compile_c


def _run(folder: Path, kinds: int, directories: int) -> list[str]:
    include = ROOT / "include" / "nearfar" / "memkind"
    program = compile_c(folder, "memkind_pmem", linked=True, flags=[f"-I{include}"])
    others = [folder / f"directory-{i}" for i in range(directories)]
    for other in others:
        other.mkdir()
    done = subprocess.run(
        [program, str(folder), str(kinds), *map(str, others)],
        env={**clean_environment(), "NEARFAR_HMALLOC_FAR": "dram"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_kinds_in_files_are_created_configured_and_destroyed(tmp_path: Path) -> None:
    assert _run(tmp_path, 10, 5) == [
        "too small: -13 invalid argument",
        "no directory: -13 invalid argument",
        "dax of no directory: -3 the file cannot be mapped",
        "destroy default: -13 invalid argument",
        "configured: 0 success",
        "usable 6",
        "aligned: 0 success",
        "detected 1 1",
        "too large 1",
        "far: 0 success",
        "destroyed: 0 success",
        "kinds: 0 success",
        "directories: 0 success",
    ]


def test_kinds_in_more_directories_than_tiers_are_refused(tmp_path: Path) -> None:
    assert _run(tmp_path, 1, 6)[-1] == "directories: -15 too many kinds, or directories of kinds"
