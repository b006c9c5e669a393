"""nearfar in a directory whose path has what separates libraries, or options of the emulator."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.process import helpers
from nearfar.tracing.recording import emulated
from tracing import needs_emulator, stats


def _install(folder: Path) -> None:
    helpers.NATIVE_DIR = folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The native core below a directory with a blank, a colon and a comma."""
    made = tmp_path / "a b,c:d"
    made.symlink_to(helpers.NATIVE_DIR)
    return made


@needs_emulator
def test_tracing_names_allocation_sites(
    folder: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    command = ("sh", "-c", "sort /etc/services")  # a program that another one starts
    done = run_nearfar("trace", "-o", "T", "--", *command, prepare=partial(_install, folder))
    assert done.code == 0, done.stderr
    assert "tcp" in done.stdout
    found = stats(run_nearfar, tmp_path / "T")
    blocks = [site["title"] for site in found["sites"] if site["kind"] == "heap"]
    assert any("sort" in title for title in blocks), found["sites"]


def test_a_heap_is_placed(folder: Path, run_nearfar: RunNearfar) -> None:
    flags = ("--tier", "far=dram", "--stats")
    done = run_nearfar(
        "run", *flags, "--", sys.executable, "-c", "print(1)", prepare=partial(_install, folder)
    )
    assert (done.code, done.stdout) == (0, "1\n"), done.stderr
    assert "far" in done.stderr
    assert "cannot be preloaded" not in done.stderr


def test_a_link_is_removed_and_other_paths_have_none(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = helpers.preloadable("libhmalloc-preload.so")
    assert Path(plain).parent == helpers.NATIVE_DIR
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(helpers, "NATIVE_DIR", folder)
    linked = Path(helpers.preloadable("libhmalloc-preload.so"))
    assert linked.resolve() == Path(plain).resolve()
    assert not set(" :,") & set(str(linked))
    helpers._remove_link(str(linked.parent.parent), os.getpid() + 1)
    assert linked.exists()
    helpers._remove_link(str(linked.parent.parent), os.getpid())
    assert not linked.exists()
    assert folder.exists()


@needs_emulator
def test_the_users_own_library_cannot_have_a_comma(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as made:
        monkeypatch.setenv("LD_PRELOAD", f"{made}/a,b.so")
        with pytest.raises(BadInputError, match="LD_PRELOAD has a comma"):
            emulated(["true"], "/ring", [])
