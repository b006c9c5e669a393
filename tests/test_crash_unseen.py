"""Stores that the recorder does not see: they are noticed, also next to libpmemobj."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar
from crashing import compiled_for, document, judged, lines_matching, needs_libpmem, needs_libpmemobj

pytestmark = [needs_libpmem, needs_libpmemobj]


def unseen(warnings: list[str]) -> list[str]:
    return [warning for warning in warnings if "stored unseen" in warning]


@pytest.mark.parametrize("verb", ["lint", "run"])
def test_a_pool_of_a_program_that_is_only_linked_with_libpmemobj(
    verb: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for("instrumented", tmp_path, "unseen_writes")
    flags = run_nearfar("crash", "flags", "link").stdout.split()
    linked = ("-Wl,--no-as-needed", "-lpmemobj")
    subprocess.run(
        ["gcc", tmp_path / "unseen_writes.o", *flags, *linked, "-o", program], check=True
    )
    found = judged(run_nearfar, verb, "instrumented", program, "dprintf")
    assert (found["verdict"], len(unseen(found["warnings"]))) == ("inconclusive", 1)


@pytest.mark.parametrize("way", ["plain", "logged", "unlogged", "persisted"])
def test_what_is_stored_unseen_into_an_object(
    way: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for("instrumented", tmp_path, "objects_unseen")
    found = judged(run_nearfar, "lint", "instrumented", program, way)
    assert found["findings"] == []  # the flush of unseen stores is not needless
    is_seen = way in ("plain", "logged")  # libpmemobj flushes what is logged
    assert found["verdict"] == ("clean" if is_seen else "inconclusive"), found["warnings"]
    words = [] if is_seen else ["at least 32 words of 4 bytes of the pool were stored unseen"]
    assert [each[: len(words[0])] for each in unseen(found["warnings"])] == words
    assert all("--recorder preload" in each for each in unseen(found["warnings"]))


def test_an_exchange_as_clang_calls_it_is_at_its_line(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compiled_for("instrumented", tmp_path, "exchanges")
    lines = lines_matching("exchanges", "// SWAP$")
    for verb in ("lint", "run"):
        flags = ["--checker", "false"] if verb == "run" else []
        command = [*flags, "--recorder", "instrumented", "--json", "-", "--", str(program)]
        found = document(run_nearfar("crash", verb, *command, str(tmp_path / verb)))
        places = [each["place" if verb == "lint" else "store"] for each in found["findings"]]
        assert {Path(place).name for place in places} <= set(lines), places
        assert verb == "run" or [Path(place).name for place in places] == lines
