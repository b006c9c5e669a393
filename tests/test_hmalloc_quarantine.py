"""The quarantine of freed blocks, in programs under the preloaded libhmalloc."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hmalloc_build import compile_c, preloaded

#: A half has 512 entries of 1 KiB each; a larger block takes several.
_QUARANTINE = {"NEARFAR_HMALLOC_HARDEN": "quarantine=1MiB"}
_LEAST_FREES = {16: 512, 100: 512, 1000: 512, 5000: 512 // 5, 40000: 512 // 40}
_TIERS = {
    "near": {},
    "shm": {"NEARFAR_HMALLOC_DEFAULT": "far", "NEARFAR_HMALLOC_FAR": "shm:,capacity=1GiB"},
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("quarantine"), "quarantine")


@pytest.mark.parametrize("tier", _TIERS)
def test_a_freed_block_waits_for_other_frees(program: Path, tier: str) -> None:
    done = preloaded(program, "delay", settings={**_QUARANTINE, **_TIERS[tier]})
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    frees = {int(size): int(count) for size, count in lines}
    assert frees.keys() == _LEAST_FREES.keys()
    for size, least in _LEAST_FREES.items():
        assert least <= frees[size] < 10_000, size


def test_without_a_quarantine_a_block_is_allocated_again_at_once(program: Path) -> None:
    done = preloaded(program, "delay")
    assert done.stdout.splitlines()[0] == "16 0"


def test_a_second_free_in_quarantine_ends_the_program(program: Path) -> None:
    done = preloaded(program, "twice", settings=_QUARANTINE)
    assert done.returncode == -signal.SIGABRT
    assert "double free" in done.stderr


@pytest.mark.parametrize("tier", _TIERS)
@pytest.mark.parametrize("size", ["1KiB", "64KiB", "1MiB"])
def test_blocks_of_threads_and_children_are_intact(program: Path, tier: str, size: str) -> None:
    hardened = {"NEARFAR_HMALLOC_HARDEN": f"quarantine={size}"}
    done = preloaded(program, "churn", settings={**hardened, **_TIERS[tier]})
    assert (done.returncode, done.stderr) == (0, "")
