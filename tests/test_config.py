"""``nearfar config``: C and C++ programs are built with the libraries that the package brings."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.errors import MachineError
from nearfar.process import development

EXAMPLES = Path(__file__).parent.parent / "examples"
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(nearfar REQUIRED)
add_executable(near_far {hmalloc}/near_far.c)
target_link_libraries(near_far PRIVATE nearfar::hmalloc)
"""


def printed(run_nearfar: RunNearfar, *words: str) -> list[str]:
    done = run_nearfar("config", *words)
    assert done.code == 0, done.stderr
    return shlex.split(done.stdout)


def output_of(*command: str | Path, cwd: Path) -> str:
    environment = {**os.environ, "NEARFAR_HMALLOC_FAR": "shm:,capacity=64MiB"}
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_c_program_is_built_and_runs(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    flags = printed(run_nearfar, "--cflags", "--libs")
    source = EXAMPLES / "hmalloc" / "near_far.c"
    output_of("cc", source, *flags, "-o", "near_far", cwd=tmp_path)
    assert output_of("./near_far", cwd=tmp_path)


def test_a_program_with_a_pool_is_built_and_runs(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    if not (development.PKG_CONFIG_DIR / "nearfar.pc").exists():
        pytest.skip("built without libpmemobj")
    flags = printed(run_nearfar, "persist", "--cflags", "--libs")
    source = EXAMPLES / "phone_book" / "phone_book.cpp"
    output_of("c++", "-std=c++20", source, *flags, "-o", "phone_book", cwd=tmp_path)
    assert "ada 36" in output_of("./phone_book", "file:book.pool", "ada", "36", cwd=tmp_path)


def test_cmake_finds_the_package(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (folder,) = printed(run_nearfar, "--cmakedir")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(hmalloc=EXAMPLES / "hmalloc"))
    output_of("cmake", "-S", ".", "-B", "build", f"-Dnearfar_DIR={folder}", cwd=tmp_path)
    output_of("cmake", "--build", "build", cwd=tmp_path)
    assert output_of("build/near_far", cwd=tmp_path)


def test_flags_are_those_of_pkg_config(
    run_nearfar: RunNearfar, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (folder,) = printed(run_nearfar, "--pkgconfigdir")
    monkeypatch.setenv("PKG_CONFIG_PATH", folder)
    theirs = output_of("pkg-config", "--cflags", "--libs", "hmalloc", cwd=tmp_path)
    normal = [os.path.normpath(flag) for flag in shlex.split(theirs)]
    ours = printed(run_nearfar, "--cflags", "--libs")
    assert normal == [flag for flag in ours if not flag.startswith("-Wl,-rpath")]


def test_a_folder_with_a_blank_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "pkgconfig"
    folder.mkdir(parents=True)
    described = (development.PKG_CONFIG_DIR / "hmalloc.pc").read_text()
    (folder / "hmalloc.pc").write_text(described)
    monkeypatch.setattr(development, "PKG_CONFIG_DIR", folder)
    (include,) = shlex.split(development.flags_of("hmalloc").cflags)
    assert include.startswith("-I/")


def test_a_build_without_pools_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(development, "PKG_CONFIG_DIR", tmp_path)
    with pytest.raises(MachineError, match="built without persist"):
        development.flags_of("persist")


def test_what_to_print_must_be_named(run_nearfar: RunNearfar) -> None:
    run_nearfar("config").assert_refused(2, "nothing to print was named")


def test_libraries_that_are_not_installed_are_named(
    run_nearfar: RunNearfar, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\necho "${1#-print-file-name=}"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if not (development.PKG_CONFIG_DIR / "nearfar.pc").exists():
        pytest.skip("built without libpmemobj")
    done = run_nearfar("config", "persist", "--libs")
    assert done.code == 0
    assert "-lpmemobj" in done.stdout
    assert "libpmemobj.so" in done.stderr
    assert "apt-get install libpmemobj-dev libpmem-dev" in done.stderr
    compiler.write_text("#!/bin/sh\nexit 1\n")
    assert run_nearfar("config", "persist", "--libs").stderr == ""
    assert run_nearfar("config", "--libs").stderr == ""
