"""libhmalloc as others use it: installed, found by pkg-config and CMake, with its manual page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from installed_libraries import install

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples" / "hmalloc"
HEADER = ROOT / "include" / "nearfar" / "hmalloc.h"
LIBRARIES = ("hmalloc", "hmalloc_static", "hmalloc_preload")


def quietly(*command: object, **variables: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where libhmalloc was installed, moved afterwards: nothing may know the first place."""
    place = tmp_path_factory.mktemp("prefix")
    install("hmalloc", place / "first", *LIBRARIES)
    return (place / "first").rename(place / "moved")


def flags(prefix: Path, *wanted: str) -> list[str]:
    return quietly(
        "pkg-config", *wanted, "hmalloc", PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig")
    ).split()


def near_and_far(program: Path, prefix: Path) -> None:
    reported = quietly(program, LD_LIBRARY_PATH=str(prefix / "lib"), NEARFAR_HMALLOC_FAR="dram")
    assert reported.splitlines()[:2] == [
        "the index is near, its records are far",
        "far memory holds 4096 blocks",
    ]
    assert "the first record is near now: record of key 0" in reported


def containers(program: Path, prefix: Path) -> None:
    reported = quietly(program, LD_LIBRARY_PATH=str(prefix / "lib"), NEARFAR_HMALLOC_FAR="dram")
    assert reported.splitlines() == [
        "the index is near, its texts are far",
        "the text of key 300, too long to be kept inside",
    ]


def test_installed_files(prefix: Path) -> None:
    headers = {path.name for path in (prefix / "include" / "nearfar").iterdir()}
    assert headers == {path.name for path in HEADER.parent.glob("hmalloc*")} | {"memkind"}
    assert (prefix / "include" / "nearfar" / "memkind" / "memkind.h").exists()
    assert [
        folder for folder in prefix.rglob("*") if folder.is_dir() and not any(folder.iterdir())
    ] == []


def test_the_c_example_by_pkg_config(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "near_far"
    quietly(
        "cc",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        EXAMPLES / "near_far.c",
        *flags(prefix, "--cflags", "--libs"),
        "-o",
        program,
    )
    near_and_far(program, prefix)


def test_the_cxx_example_by_pkg_config(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "containers"
    quietly(
        "c++",
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        EXAMPLES / "containers.cpp",
        *flags(prefix, "--cflags", "--libs"),
        "-o",
        program,
    )
    containers(program, prefix)


def test_the_static_library_needs_no_other(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "near_far"
    quietly(
        "cc",
        EXAMPLES / "near_far.c",
        *flags(prefix, "--cflags"),
        prefix / "lib/libhmalloc.a",
        "-pthread",
        "-o",
        program,
    )
    near_and_far(program, prefix)


def test_the_examples_by_find_package(prefix: Path, tmp_path: Path) -> None:
    quietly("cmake", "-S", EXAMPLES, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    quietly("cmake", "--build", tmp_path)
    near_and_far(tmp_path / "near_far", prefix)
    containers(tmp_path / "containers", prefix)


def test_the_manual_page_is_installed_and_sound(prefix: Path) -> None:
    page = prefix / "share" / "man" / "man3" / "hmalloc.3"
    assert page.is_file()
    if not shutil.which("groff"):
        pytest.skip("groff is not installed: the page was NOT set")
    done = subprocess.run(
        ["groff", "-mdoc", "-Tutf8", "-ww", str(page)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_the_manual_page_documents_the_header() -> None:
    header, page = HEADER.read_text(), (ROOT / "docs" / "man" / "hmalloc.3").read_text()
    declared = set(re.findall(r"^HM_API .*?\b(hm\w*)\(", header, re.MULTILINE))
    assert len(declared) > 15
    assert declared == set(re.findall(r"^\.Fn (hm\w*)", page.split(".Sh DESCRIPTION")[0], re.M))
    assert set(re.findall(r"HMALLOC_[A-Z_]+[A-Z]", header)) == set(
        re.findall(r"HMALLOC_[A-Z_]+[A-Z]", page)
    )
    counts = re.findall(r"^  uint64_t (\w+);", header, re.MULTILINE)
    assert counts
    assert [count for count in counts if count not in page] == []
