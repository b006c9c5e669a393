"""``nearfar crash flags``: what a program for the instrumented recorder is built with."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: tools/packages")


def test_a_program_built_with_the_flags_calls_the_recorder(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = {}
    for step in ("compile", "link"):
        done = run_nearfar("crash", "flags", step)
        assert (done.code, done.stderr) == (0, "")
        flags[step] = shlex.split(done.stdout)
    (tmp_path / "store.c").write_text("int x; int main(int n, char **v) { x = n; return x - 1; }\n")
    for command in (
        ["gcc", *flags["compile"], "-c", "store.c"],
        ["gcc", "store.o", *flags["link"], "-o", "store"],
        ["./store"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    needed = subprocess.run(
        ["readelf", "--dynamic", "store"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert "libnearfar-crash-recorder.so" in needed
    assert "libtsan" not in needed


def test_with_lto_the_flags_are_for_both_steps(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "store.c").write_text("int x; int main(int n, char **v) { x = n; return x - 1; }\n")
    compiling, linking = (
        shlex.split(run_nearfar("crash", "flags", step).stdout) for step in ("compile", "link")
    )
    for command in (
        ["gcc", "-flto", *compiling, "-c", "store.c"],
        ["gcc", "-flto", *compiling, "store.o", *linking, "-o", "store"],
        ["./store"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    calls = subprocess.run(
        ["nm", "--undefined-only", "store"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "__tsan_write4" in calls
