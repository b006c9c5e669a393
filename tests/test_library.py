"""The C++ library as a stranger gets it: installed, then found by CMake and by pkg-config.

The example is copied out of the tree and built there both ways; both programs then share a pool.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar
from crashing import document
from installed_libraries import install

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "sorted_list"
STRUCTURE = ROOT / "examples" / "phone_book" / "phone_book.cpp"


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def has_libpmemobj() -> bool:
    return subprocess.run(["pkg-config", "--exists", "libpmemobj"], check=False).returncode == 0


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not has_libpmemobj():
        pytest.skip("libpmemobj is not installed: apt-get install libpmemobj-dev")
    prefix = tmp_path_factory.mktemp("prefix")
    install("development", prefix, "nearfar")
    return prefix


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("outside") / "sorted_list"))


@pytest.fixture(scope="module")
def by_cmake(prefix: Path, example: Path) -> Path:
    run(
        "cmake",
        "-S",
        example,
        "-B",
        example / "build",
        "-G",
        "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}",
    )
    run("cmake", "--build", example / "build")
    return example / "build" / "sorted_list"


def built_by_pkg_config(prefix: Path, source: Path, program: Path) -> Path:
    found = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "nearfar", env=found).split()
    run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags)
    return program


@pytest.fixture(scope="module")
def by_pkg_config(prefix: Path, example: Path) -> Path:
    return built_by_pkg_config(prefix, example / "sorted_list.cpp", example / "by_pkg_config")


def test_the_example_is_short() -> None:
    assert len((EXAMPLE / "sorted_list.cpp").read_text().splitlines()) < 60


def test_programs_built_both_ways_share_a_pool(
    by_cmake: Path, by_pkg_config: Path, tmp_path: Path
) -> None:
    tier = f"file:{tmp_path}/list.pool"
    assert run(by_cmake, tier, "5", "3", "9").split() == ["3", "5", "9", "3", "keys"]
    assert run(by_pkg_config, tier, "4", "5").split() == ["3", "4", "5", "9", "4", "keys"]
    assert "4 keys" in run(by_cmake, tier)


def test_the_example_reports_what_failed_and_the_next_step(
    by_pkg_config: Path, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no pool")
    for tier, code, what in (
        ("nosuch:x", 2, "unknown tier 'nosuch:x'"),
        (f"file:{tmp_path}/none/list.pool", 3, ""),
        (f"file:{tmp_path}/text", 2, ""),
    ):
        command = [str(by_pkg_config), tier, "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        first, *rest = done.stderr.splitlines()
        assert first.startswith(f"sorted_list: {what}"), done.stderr
        assert [line[:8] for line in rest] == ["  next: "], done.stderr
        assert (done.returncode, done.stdout) == (code, "")


def test_the_structures_are_there_too(prefix: Path, tmp_path: Path) -> None:
    program = built_by_pkg_config(prefix, STRUCTURE, tmp_path / "phone_book")
    tier = f"file:{tmp_path}/book.pool"
    run(program, tier, "ada", "36", "bob", "41")
    lines = run(program, tier, "bob", "42", "eve", "7").splitlines()
    assert sorted(lines) == ["3 entries", "ada 36", "bob 42", "eve 7"]


@pytest.mark.skipif(shutil.which("pmempool") is None, reason="pmempool is not installed")
def test_the_tools_of_libpmemobj_accept_the_pool(by_cmake: Path, tmp_path: Path) -> None:
    run(by_cmake, f"file:{tmp_path}/list.pool", *map(str, range(1000)))
    assert "consistent" in run("pmempool", "check", "-v", tmp_path / "list.pool")
    assert "sorted list;version=1" in run("pmempool", "info", tmp_path / "list.pool")


def test_its_programs_are_started_on_images_of_a_pool_on_a_disk(
    by_pkg_config: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = (str(by_pkg_config), f"file:{tmp_path}/list.pool", "5", "3")
    done = run_nearfar("crash", "run", "--budget", "40", "--json", "-", "--", *program)
    found = document(done)
    assert (found["reopening"]["started"], found["violations"]) == (True, 0)
    assert not any("not started" in warning for warning in found["warnings"])
