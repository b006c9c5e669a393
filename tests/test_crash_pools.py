"""Pools of our own structures: images of a run are opened by libpmemobj, and leak nothing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import RunNearfar
from crashing import document
from nearfar import _native

SHM = Path("/dev/shm")
#: A program that makes a pool, fills it, or checks an image of it, before and after it is opened.
STEPS = """
import os, sys
from nearfar import _native
kind, what, pool = sys.argv[1:]
structure = getattr(_native, kind)
place = f"shm:{pool}"

def lost(when):
    found = _native.pool_leaks(pool)
    if found["damage"] or found["lost"] or not found["replayed"]:
        sys.exit(f"{found['lost']} objects are lost, {found['damage']} damaged {when} recovery")

if what == "make":
    structure.create(place, (32 if kind == "BytesMap" else 8) << 20).close()
elif what == "fill":
    opened = structure.open(place)
    add = opened.push if kind == "WordQueue" else opened.insert
    number = 0
    for step in range(STEPS):
        if step % 4 == 3:
            opened.pop() if kind == "WordQueue" else opened.remove(KEY(number - 2))
        else:
            add(*[KEY(number)] * (2 if kind.endswith("Map") else 1))
            number += 1
    opened.close()
else:
    lost("before")
    opened = structure.open(place)
    opened.verify()
    opened.close()
    lost("after")
"""


@pytest.fixture
def shm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if not SHM.is_dir() or not hasattr(_native, "WordMap"):
        pytest.skip("needs /dev/shm and libpmemobj")
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def explore(kind: str, steps: int, budget: int, shm: Path, run_nearfar: RunNearfar) -> None:
    key = "lambda n: (n.to_bytes(8) * (1 + 40 * (n % 3)))" if kind == "BytesMap" else "lambda n: n"
    program = shm / "steps.py"
    program.write_text(STEPS.replace("STEPS", str(steps)).replace("KEY", f"({key})"))
    command = [sys.executable, str(program), kind]
    subprocess.run([*command, "make", shm / "pool"], check=True)
    done = run_nearfar(
        "crash",
        "run",
        "--checker",
        " ".join([*command, "check"]),
        "--budget",
        str(budget),
        "--json",
        "-",
        "--",
        *command,
        "fill",
        str(shm / "pool"),
        timeout=1200,
    )
    found = document(done)
    code = {"clean": 0, "inconclusive": 3}[found["verdict"]]
    assert (done.code, found["violations"], found["warnings"]) == (code, 0, []), found["findings"]
    assert found["states"] == budget or found["states_left"] == 0


@pytest.mark.parametrize("kind", ["WordMap"])
def test_images_of_a_pool_leak_nothing(kind: str, shm: Path, run_nearfar: RunNearfar) -> None:
    explore(kind, 4, 20, shm, run_nearfar)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["WordMap", "BytesMap", "WordList", "WordSkipList", "WordQueue"])
def test_many_images_of_each_structure_leak_nothing(
    kind: str, shm: Path, run_nearfar: RunNearfar
) -> None:
    explore(kind, 40, 150, shm, run_nearfar)
