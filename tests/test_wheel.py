"""The wheel that `pip install .` makes, in a virtual environment of its own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Kept between runs, so that only what changed is built again.
BUILD = ROOT / "build" / "wheel"


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_an_installed_wheel_runs_a_program_in_far_memory(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
        f"--config-settings=build-dir={BUILD}", "-w", tmp_path, ROOT)  # fmt: skip
    (wheel,) = tmp_path.glob("nearfar-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    # What nearfar depends on is taken from where the tests run; a .pth does not make the editable
    # installation there visible, for its own .pth is not read.
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = run(python, "-c", "import nearfar; print(nearfar.__file__)").strip()
    assert Path(where).is_relative_to(tmp_path)
    nearfar = tmp_path / "venv" / "bin" / "nearfar"
    assert run(nearfar, "run", "--tier", "far=shm:", "--", "echo", "far") == "far\n"
