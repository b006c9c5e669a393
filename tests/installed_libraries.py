"""The C and C++ libraries as others get them: built without Python and installed by CMake."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Kept between runs, so that only what changed is built again.
BUILD = ROOT / "build" / "consumers"


def install(component: str, prefix: Path, *targets: str) -> None:
    """Builds the targets and installs the component that has them into ``prefix``.

    Without optimization and debug information, which takes less than half of the time: what is
    tested is what is installed where.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:  # tests that run at the same time have one tree
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = ["-DNEARFAR_PYTHON=OFF", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_INSTALL_LIBDIR=lib"]
        options += ["-DCMAKE_C_FLAGS_DEBUG=", "-DCMAKE_CXX_FLAGS_DEBUG="]
        _run("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", *options)
        _run("cmake", "--build", BUILD, "--target", *targets)
        _run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
