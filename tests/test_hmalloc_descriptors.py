"""Programs that close descriptors they did not open run unharmed, with the heap in any tier."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hmalloc_build import PRELOAD, clean_environment, compile_c, preloaded

TIERS = {
    "near": "",
    "dram": "dram,capacity=1GiB",
    "numa": "numa:0,capacity=1GiB",
    "shm": "shm:,capacity=256MiB",
    "shm copied for children": "shm:,capacity=256MiB,fork=copy",
    "file": "file:FOLDER,capacity=256MiB",
    "file copied for children": "file:FOLDER,capacity=256MiB,fork=copy",
    "file reserved at once": "file:FOLDER,capacity=256MiB,reserve=full",
}
REDIRECTIONS = {"in": "<&-", "out": ">&-", "err": "2>&-", "low": "", "all": ""}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("descriptors"), "closed_descriptors")


def _environment(tier: str, folder: Path) -> dict[str, str]:
    environment = {**clean_environment(), "LD_PRELOAD": str(PRELOAD)}
    if tier:
        environment |= {
            "NEARFAR_HMALLOC_FAR": tier.replace("FOLDER", str(folder)),
            "NEARFAR_HMALLOC_DEFAULT": "far",
        }
    return environment


@pytest.mark.parametrize("closed", REDIRECTIONS)
@pytest.mark.parametrize("tier", TIERS.values(), ids=TIERS.keys())
def test_a_program_keeps_its_files(tier: str, closed: str, program: Path, tmp_path: Path) -> None:
    heap = tmp_path / "heap"
    heap.mkdir()
    done = subprocess.run(
        ["bash", "-c", f"ulimit -n 2000; exec {program} {closed} {REDIRECTIONS[closed]}"],
        env=_environment(tier, heap),
        cwd=tmp_path,
        stderr=subprocess.PIPE if closed != "err" else None,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert {file.read_bytes() for file in tmp_path.glob("own-*")} == {b"mine"}
    assert not list(heap.iterdir())


def test_a_shell_script_keeps_what_it_redirects(tmp_path: Path) -> None:
    """A shell uses low numbers itself: `exec 3>file` replaces whatever is 3."""
    script = f"""
cd {tmp_path}
exec 3>out3 4>out4 5>out5
for i in {{1..30000}}; do words[i]=word$i; done
echo three >&3; echo four >&4; echo five >&5
exec 3>&-
text="${{words[*]}}"; echo ${{#text}}
"""
    settings = {"NEARFAR_HMALLOC_FAR": "shm:,capacity=256MiB", "NEARFAR_HMALLOC_DEFAULT": "far"}
    done = preloaded("bash", "-c", script, settings=settings)
    assert (done.stdout, done.stderr) == ("288893\n", "")
    assert [(tmp_path / f"out{i}").read_text() for i in (3, 4, 5)] == [
        "three\n",
        "four\n",
        "five\n",
    ]


def test_a_tier_in_memory_holds_no_descriptor() -> None:
    """Programs that list their descriptors, as CPython's test_subprocess does, find their own."""
    listing = "import os; print(os.listdir('/proc/self/fd'))"
    settings = {"NEARFAR_HMALLOC_FAR": "shm:,capacity=256MiB", "NEARFAR_HMALLOC_DEFAULT": "far"}
    plain = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True)
    assert preloaded(sys.executable, "-c", listing, settings=settings).stdout == plain.stdout
