"""``nearfar advise`` on the thesis' four programs: it finds the placement chosen by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from fixed_inputs import program_takes
from hmalloc_build import compile_c
from small_host import write_small_host
from tracing import needs_emulator

pytestmark = needs_emulator

#: Arguments, bytes of each array that the thesis put near, and seconds of a run: fixed, because the
#: energy of idle memory grows with them.
PROGRAMS = {
    "quick": (150_000, [600_000], 0.015),
    "merge": (100_000, [400_000, 400_000], 0.005),
    "lbm": (16, [16**3 * 19 * 8] * 2, 0.020),
    "matmul": (128, [128 * 128 * 8] * 3, 0.015),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("thesis"), "thesis")


@pytest.mark.parametrize("name", PROGRAMS)
def test_advise_puts_near_what_was_put_near_by_hand(
    name: str, program: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    n, arrays, seconds = PROGRAMS[name]
    host = write_small_host(tmp_path / "small.toml", l2_bytes=131072)
    done = run_nearfar(
        "advise",
        "--emulate",
        "--near",
        "dram-snu",
        "--far",
        "pcm-snu-ns",
        "--host",
        str(host),
        "--near-budget",
        f"{sum(arrays)}B",
        "--json",
        "-",
        "--",
        str(program),
        name,
        str(n),
        prepare=program_takes(seconds),
    )
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    heap = [site for site in found["sites"] if site["kind"] == "heap" and site["size_bytes"] > 4096]
    near = sorted(site["size_bytes"] for site in heap if site["verdict"] == "near")
    far = [site["at"] for site in heap if site["verdict"] == "far"]
    assert near == sorted(arrays)
    assert len(far) == 1  # the input, as large as an array or half of one, which is read once
    assert found["slowdown_plan"] < found["slowdown_movable_far"] < found["slowdown_all_far"]
    assert found["energy_plan_J"] < found["energy_all_far_J"]
