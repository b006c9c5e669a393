"""CPython's own tests with the heap near and in shared memory (package libpython3.X-testsuite).

They allocate, fork, spawn, close and count descriptors, and start threads in ways that we
did not think of. What fails without libhmalloc on the same machine is not a failure of ours.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from hmalloc_build import ROOT, clean_environment

pytestmark = pytest.mark.long

PYTHON = Path("/usr/bin/python3")
TESTS = [
    "test_posix",
    "test_subprocess",
    "test_multiprocessing_fork",
    "test_threading",
    "test_ctypes",
    "test_mmap",
    "test_gc",
]
HEAPS = {"near": "near=dram", "in shared memory": "far=shm:,capacity=2GiB"}
RUNS = 10
LIMIT_S = 900


def _run(test: str, folder: Path, *before: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*map(str, before), str(PYTHON), "-m", "test", "--timeout", str(LIMIT_S // 2), test]
    return subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


@cache
def _passes_without(test: str, folder: Path) -> bool:
    return _run(test, folder).returncode == 0


@pytest.mark.parametrize("heap", HEAPS.values(), ids=HEAPS.keys())
@pytest.mark.parametrize("test", TESTS)
def test_cpython(test: str, heap: str, tmp_path: Path) -> None:
    if not PYTHON.exists() or not list(Path("/usr/lib").glob("python3.*/test/test_posix.py")):
        pytest.skip("no package libpython3.X-testsuite is installed")
    if not _passes_without(test, tmp_path):
        pytest.skip(f"{test} fails here without libhmalloc")
    for run in range(RUNS):
        done = _run(test, tmp_path, ROOT / "nearfar", "run", "--tier", heap, "--quiet", "--")
        assert done.returncode == 0, (run, done.stdout[-4000:], done.stderr[-4000:])
