"""The wheel that `pip install .` makes, in a virtual environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
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
    # With what it says it depends on, from the package index, as users have it.
    run(python, "-m", "pip", "install", "-q", wheel)
    assert "No broken requirements" in run(python, "-m", "pip", "check")
    where = run(python, "-c", "import nearfar; print(nearfar.__file__)").strip()
    assert Path(where).is_relative_to(tmp_path)
    nearfar = tmp_path / "venv" / "bin" / "nearfar"
    assert run(nearfar, "run", "--tier", "far=shm:", "--", "echo", "far") == "far\n"
    told = run(nearfar, "topo", "--json", "-")
    assert json.loads(told)["tiers"]
