"""memkind's interface for kinds in files, by nearfar/hmalloc_memkind.h."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hmalloc_build import clean_environment, compile_c


def _run(folder: Path, kinds: int) -> list[str]:
    program = compile_c(folder, "memkind_pmem", linked=True)
    done = subprocess.run(
        [program, str(folder), str(kinds)], env=clean_environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_kinds_in_files_are_created_configured_and_destroyed(tmp_path: Path) -> None:
    assert _run(tmp_path, 6) == [
        "too small: -13 invalid argument",
        "no directory: -13 invalid argument",
        "dax of no directory: -3 the file cannot be mapped",
        "destroy default: -13 invalid argument",
        "configured: 0 success",
        "aligned: 0 success",
        "detected 1 1",
        "too large 1",
        "destroyed: 0 success",
        "kinds: 0 success",
    ]


def test_more_kinds_than_tiers_are_refused(tmp_path: Path) -> None:
    assert _run(tmp_path, 7)[-1] == "kinds: -15 too many kinds: at most six in files"


@pytest.mark.xfail(strict=True, reason="libhmalloc issue: a kind is a tier, and there are eight")
def test_ten_kinds_at_once(tmp_path: Path) -> None:
    assert _run(tmp_path, 10)[-1] == "kinds: 0 success"
