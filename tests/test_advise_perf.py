"""``nearfar advise --perf``: files of perf, recorded here or made with hardware events."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import perf_files
from conftest import RunNearfar
from small_host import write_small_host
from test_advise_sampled import PROGRAM

RECORDED = Path(__file__).parent / "fixtures" / "perf"

#: As docs/how-to/perf-data.md has it.
RECORD = [
    "perf", "record", "-d", "-e", "cpu-clock:u,page-faults/period=10/u", "-c", "500000",
    "--user-regs=AX,BX,CX,DX,SI,DI,BP,SP,R8,R9,R10,R11,R12,R13,R14,R15",
]  # fmt: skip


@pytest.fixture
def host(tmp_path: Path) -> tuple[str, ...]:
    file = write_small_host(tmp_path / "small.toml", frequency_hz=3_000_000_000)
    return ("--near", "ddr4", "--host", str(file))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded program that chases pointers."""
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    folder = tmp_path_factory.mktemp("perf")
    (folder / "chase.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", "chase.c", "-o", "chase"], check=True, cwd=folder)
    command = [*RECORD, "-o", "perf.data", "--", "./chase"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not (folder / "perf.data").exists():
        pytest.skip(f"perf cannot record here: {done.stderr.strip()[-200:]}")
    return folder / "perf.data"


def advised(run_nearfar: RunNearfar, host: tuple[str, ...], file: Path, folder: Path) -> Any:
    done = run_nearfar("advise", *host, "--perf", str(file), "--json", "found.json")
    assert done.code == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


def test_a_recorded_program_loses_where_it_chases_pointers(
    run_nearfar: RunNearfar, host: tuple[str, ...], recorded: Path, tmp_path: Path
) -> None:
    found = advised(run_nearfar, host, recorded, tmp_path)
    assert found["program"] == [str(recorded)]
    assert found["programs"][0]["path"] == "chase"
    assert found["sampling_period_s"] == pytest.approx(0.0005)
    assert found["cpu_near_s"] == pytest.approx(found["samples"] * 0.0005)
    assert found["slowdown_all_far"] > 1.2
    first = found["sites"][0]
    assert (first["kind"], first["verdict"]) == ("mapping", "near")
    # Two blocks of 64 MiB are one region; the chase is in the upper half, in a part or more.
    upper = [site for site in found["sites"] if site["part_bytes"][:1] > [60 << 20]]
    assert min(site["part_bytes"][0] for site in upper) == pytest.approx(64 << 20, rel=0.05)
    losses = [sum(site["far_time_s"] for site in sites) for sites in (upper, found["sites"])]
    assert losses[0] > 0.95 * losses[1]
    # Next to other programs, a part that was hardly sampled may be found to lose nothing.
    kept = sum(site["far_time_s"] for site in upper if site["verdict"] == "near")
    assert kept > 0.9 * losses[1]
    plan = (tmp_path / found["plan"]).read_text()
    assert "rule near map=anonymous size=" in plan
    assert any("no allocation sites" in note for note in found["warnings"])
    assert not any("not validated" in note for note in found["warnings"])


def test_code_that_has_changed_since_is_not_used(
    run_nearfar: RunNearfar, host: tuple[str, ...], recorded: Path, tmp_path: Path
) -> None:
    program = recorded.parent / "chase"
    kept = program.read_bytes()
    program.unlink()  # another file, so that a copy that still runs keeps its own
    try:
        shutil.copy("/bin/true", program)
        found = advised(run_nearfar, host, recorded, tmp_path)
    finally:
        program.write_bytes(kept)
        program.chmod(0o755)
    assert any("code that cannot be read here" in note for note in found["warnings"])
    assert found["slowdown_all_far"] < 1.1


def test_hardware_samples_are_misses_without_a_model_of_caches(
    run_nearfar: RunNearfar, host: tuple[str, ...], tmp_path: Path
) -> None:
    """Latencies of two loads in four come from memory at a known address, and one thread ran."""
    rounds = 50
    file = perf_files.pebs(tmp_path / "pebs.data", rounds)
    found = advised(run_nearfar, host, file, tmp_path)
    assert found["samples"] == 4 * rounds
    assert "sampling_period_s" not in found
    assert "hardware samples: not validated on hardware" in found["warnings"]
    assert any("1 threads are assumed to have run" in text for text in found["limits"])
    assert found["cpu_near_s"] == pytest.approx((rounds - 1) * 100e-6, rel=0.01)
    # Latencies exceed the CPU time and are scaled to it: (350 + 520) / 1840 of it is known misses.
    share = found["sites"][0]["far_time_s"] / found["cpu_near_s"]
    near, far = found["near_latency_ns"], found["far_latency_ns"]
    assert share == pytest.approx((350 + 520) / 1840 * (far / near - 1), rel=0.1)


def test_hardware_samples_require_the_frequency_of_their_cycles(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    small = write_small_host(tmp_path / "small.toml")
    file = perf_files.pebs(tmp_path / "pebs.data", 50)
    done = run_nearfar(
        "advise", "--near", "ddr4", "--host", str(small), "--perf", str(file)
    )  # fmt: skip
    assert done.code == 2
    assert "has no frequency_hz" in done.stderr


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing.data", "cannot open missing.data"),
        ("empty.data", "is not a perf.data file"),
        ("cut.data", "truncated"),
        ("no-registers.data", "samples of the clock without the registers of the program"),
        ("few.data", "has 5 samples of programs: too few"),
    ],
)
def test_files_of_no_use_are_refused_with_one_message(
    run_nearfar: RunNearfar, host: tuple[str, ...], tmp_path: Path, name: str, why: str
) -> None:
    (tmp_path / "empty.data").touch()
    whole = (RECORDED / "clock-registers.data").read_bytes()
    (tmp_path / "cut.data").write_bytes(whole[: len(whole) // 2])
    shutil.copy(RECORDED / "compressed.pipe.data", tmp_path / "no-registers.data")
    perf_files.ibs_raw(tmp_path / "few.data")
    done = run_nearfar("advise", *host, "--perf", name)
    assert done.code == 2, done.stderr
    assert why in done.stderr
    assert done.stderr.count("next:") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--perf", "perf.data", "--pid", "1"), "name one of"),
        (("--perf", "perf.data", "--", "true"), "name one of"),
        (("--perf", "perf.data", "--emulate"), "a file cannot be emulated"),
    ],
)
def test_a_file_excludes_other_ways_to_observe(
    run_nearfar: RunNearfar, arguments: tuple[str, ...], why: str
) -> None:
    done = run_nearfar("advise", *arguments)
    assert done.code == 2
    assert why in done.stderr
