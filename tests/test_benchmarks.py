"""Benchmarks run rarely: at least their imports must hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parent.parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda path: path.stem)
def test_imports_of_a_benchmark_hold(benchmark: Path) -> None:
    command = [sys.executable, "-c", f"import {benchmark.stem}"]
    done = subprocess.run(
        command, cwd=benchmark.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
