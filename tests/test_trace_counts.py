"""Counts of ``nearfar trace`` against valgrind's, on the same programs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import RunNearfar
from test_cache_cachegrind import build, cachegrind, valgrind
from tracing import USUAL_CACHES, needs_emulator, traced

needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed: nothing to compare with"
)


def lackey(program: list[str], folder: Path) -> dict[str, int]:
    file = folder / "lackey"
    valgrind("--tool=lackey", "--trace-mem=yes", f"--log-file={file}", *program)
    kinds = dict.fromkeys("LSM", 0)
    with file.open() as lines:
        for line in lines:
            if line[:1] == " " and line[1:2] in kinds:
                kinds[line[1]] += 1
    return {"loads": kinds["L"] + kinds["M"], "stores": kinds["S"] + kinds["M"]}


def counted(
    run_nearfar: RunNearfar, program: list[str], folder: Path
) -> tuple[dict[str, int], dict[str, int]]:
    """Our counts of one run and valgrind's."""
    trace = folder / f"T-{'-'.join(program[1:])}"
    found = traced(run_nearfar, trace, *USUAL_CACHES, "--", *program)
    theirs = cachegrind(program, "usual", folder) | lackey(program, folder)
    theirs["l1_misses"] = theirs["D1mr"] + theirs["D1mw"]
    theirs["l2_misses"] = theirs["DLmr"] + theirs["DLmw"]
    return found, theirs


def check_counts(
    run_nearfar: RunNearfar, name: str, less: list[str], more: list[str], folder: Path
) -> None:
    """Growth of each count with more work, so that the work of libc before main, on whatever
    processor it finds, is in neither figure."""
    program = build(name, folder)
    ours, theirs = zip(
        *(counted(run_nearfar, [program, *arguments], folder) for arguments in (less, more)),
        strict=True,
    )
    for key in ("loads", "stores", "l1_misses", "l2_misses"):
        added, wanted = ours[1][key] - ours[0][key], theirs[1][key] - theirs[0][key]
        share, slack = (0.005, 40) if key.endswith("misses") else (0.001, 40)
        print(f"{name} {key}: {added} more of ours, {wanted} more of valgrind's")
        assert abs(added - wanted) <= max(share * wanted, slack), (name, key)


@needs_emulator
@needs_valgrind
def test_counts_are_valgrinds(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    check_counts(run_nearfar, "list", ["20000", "1"], ["20000", "4"], tmp_path)


@pytest.mark.long
@needs_emulator
@needs_valgrind
@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("sort", ["5000"], ["50000"]),
        ("matmul", ["30"], ["90"]),
        ("list", ["30000", "2"], ["30000", "20"]),
    ],
)
def test_counts_are_valgrinds_on_three_programs(
    name: str, less: list[str], more: list[str], run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    check_counts(run_nearfar, name, less, more, tmp_path)
