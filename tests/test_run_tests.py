"""`make test` fails if any of its stages fails, also one that runs in the background."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Each command of a stage: fails if FAIL names it, ends the shell that runs it if END does.
COMMAND = """#!/bin/bash
call="$(basename "$0") $1"
case $call in
  "$FAIL") exit 3 ;;
  "$END") kill -9 $PPID ;;
esac
"""


@pytest.mark.parametrize(
    ("variables", "failed"),
    [
        ({}, ""),
        ({"FAIL": "lint "}, "lint"),
        ({"FAIL": "native-tests test"}, "native"),
        ({"FAIL": "native-tests asan-short"}, "sanitizers"),
        ({"FAIL": "fuzz 9"}, "fuzz"),
        ({"FAIL": "python-tests not long and not vm"}, "python"),
        ({"END": "fuzz 9"}, "background"),
    ],
)
def test_a_stage_that_fails_is_named(
    tmp_path: Path, variables: dict[str, str], failed: str
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "build").mkdir()
    shutil.copy(ROOT / "tools" / "run-tests", tmp_path / "tools")
    for name in ("lint", "native-tests", "fuzz", "python-tests"):
        (tmp_path / "tools" / name).write_text(COMMAND)
        (tmp_path / "tools" / name).chmod(0o755)
    done = subprocess.run(
        [tmp_path / "tools" / "run-tests"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == (1 if failed else 0), done
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"FAILED: {failed}," if failed else "all stages passed in "), done
