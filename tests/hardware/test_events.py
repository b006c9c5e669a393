"""Hardware counters, and memory accesses that hardware samples (Intel PEBS, AMD IBS)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.measure import counters
from small_host import write_small_host
from test_advise_sampled import PROGRAM


def test_counters_count_instructions(run_nearfar: RunNearfar) -> None:
    events = counters.available()
    if "instructions" not in events.fields.values():
        pytest.skip(f"no hardware counters: {events.missing.get('instructions')}")
    done = run_nearfar("bench", "map", "-n", "1000", "--counters", "perf", "--quiet", "--json", "-")
    assert done.code == 0, done
    counted = json.loads(done.stdout)["counters"]
    assert counted["source"] == "perf"
    assert counted["instructions"] > 1000


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Memory accesses of a program that chases pointers."""
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    (tmp_path / "chase.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", "chase.c", "-o", "chase"], check=True, cwd=tmp_path)
    command = ["perf", "mem", "record", "-o", "perf.data", "--", "./chase"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no PEBS or IBS: perf mem record: {done.stderr.strip()[-200:]}")
    return tmp_path / "perf.data"


def test_advice_from_sampled_accesses(
    run_nearfar: RunNearfar, recorded: Path, tmp_path: Path
) -> None:
    # The host's frequency must be that of this machine: latencies are in cycles.
    khz = Path("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency")
    frequency = int(khz.read_text()) * 1000 if khz.exists() else 3_000_000_000
    host = write_small_host(tmp_path / "small.toml", frequency_hz=frequency)
    arguments = ("--near", "ddr4", "--host", str(host), "--perf", str(recorded))
    done = run_nearfar("advise", *arguments, "--json", "found.json")
    assert done.code == 0, done
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["samples"] > 100
    first = found["sites"][0]
    assert (first["kind"], first["verdict"]) == ("mapping", "near")
    assert Path(found["programs"][0]["path"]).name == "chase"
