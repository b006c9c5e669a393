"""Ends of measuring verbs after noise, Ctrl-C and bad input."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shared_memory
from conftest import RunNearfar
from fixed_inputs import neighbors_use_one_cpu

COMMAND = [sys.executable, "-m", "nearfar.cli.app"]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )


def test_a_busy_neighbor_is_reported_and_fails_under_strict(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        "bench",
        "stream",
        "--size",
        "1MiB",
        "--runs",
        "5",
        "--strict",
        "--json",
        "s.json",
        prepare=neighbors_use_one_cpu,
    )
    assert done.code == 4
    assert "disturbed: " in done.stderr
    assert "other processes used 1.00" in " ".join(done.stderr.split())
    assert "next:" in done.stderr
    noise = json.loads((tmp_path / "s.json").read_text())["noise"]
    assert noise["noisy"]
    assert noise["foreign_cpus"] == 1.0


def wait_for(condition: object, seconds: float) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_ctrl_c_keeps_finished_sections_and_leaves_no_files(tmp_path: Path) -> None:
    before = shared_memory.files()
    child = subprocess.Popen(
        [*COMMAND, "study", "--time", "90", "--out", "record"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    record = tmp_path / "record" / "run.json"
    wait_for(lambda: record.exists() and '"latency": {' in record.read_text(), 600)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=600)
    assert child.returncode == 130
    assert "record" in stderr
    assert "Traceback" not in stderr
    run_document = json.loads(record.read_text())
    assert run_document["status"] == "interrupted"
    assert run_document["sections"]["latency"]["curves"]
    assert {p.name for p in (tmp_path / "record").iterdir()} == {"run.json", "samples.jsonl"}
    assert shared_memory.left_behind(before) == set()
    shown = run("show", "record", cwd=tmp_path)
    assert shown.returncode == 0
    assert "Interrupted" in shown.stdout


BAD_INPUT = [
    (2, "unknown tier", ["bench", "stream", "--tier", "nonsense"]),
    (2, "positive", ["bench", "stream", "--size", "0"]),
    (2, "positive", ["bench", "stream", "--size", "-1"]),
    (2, "not a size", ["bench", "stream", "--size", "much"]),
    (3, "do not fit", ["bench", "stream", "--size", "100TiB"]),
    (2, "too small", ["bench", "stream", "--size", "8"]),
    (2, "more than any memory", ["bench", "mapped", "--size", "99999999999999999999999G"]),
    (2, "too small to separate", ["probe", "--region", "64"]),
    (3, "does not fit in dram", ["probe", "--region", "100TiB"]),
    (2, "cannot use", ["probe", "--tier", "shm:/nonexistent"]),
    (2, "is not a tmpfs", ["probe", "--tier", "shm:/proc"]),
    (2, "create a file in", ["probe", "--tier", "file:/nonexistent/x"]),
    (3, "MAP_SYNC", ["probe", "--tier", "fsdax:."]),
    (3, "no NUMA node 9999", ["probe", "--tier", "numa:9999"]),
    (3, "no DAX device", ["probe", "--tier", "devdax:/dev/dax77.0"]),
    (3, "not use processor 4095", ["probe", "--cpus", "4095"]),
    (2, "cannot create a file in missing", ["bench", "mapped", "--path", "missing"]),
    (2, "exists", ["bench", "mapped", "--path", "taken"]),
    (2, "without files", ["bench", "mapped", "--path", "/dev/null", "--size", "1MiB"]),
    (2, "whole number of MiB", ["bench", "mapped", "--size", "5000"]),
    (3, "do not fit", ["bench", "mapped", "--size", "4194304GiB"]),
    (3, "cannot write missing/t", ["bench", "compete", "--csv", "missing/t", "--time", "1"]),
    (3, "cannot write missing/t", ["bench", "stream", "--json", "missing/t", "--time", "1"]),
    (2, "no record, profile or host missing", ["show", "missing"]),
    (2, "exists already", ["study", "--out", "taken", "--time", "1"]),
    (2, "not a time", ["study", "--time", "soon"]),
]


@pytest.mark.parametrize(("code", "said", "arguments"), BAD_INPUT, ids=lambda x: str(x)[:40])
def test_bad_input_gets_one_clear_error_and_leaves_nothing(
    tmp_path: Path, run_nearfar: RunNearfar, code: int, said: str, arguments: list[str]
) -> None:
    (tmp_path / "taken").touch()
    done = run_nearfar(*arguments)
    assert done.code == code, done.stderr
    assert said in done.stderr
    assert "next:" in done.stderr
    assert "Traceback" not in done.stderr
    left = {p.name for p in tmp_path.rglob("*")} - {"taken", "nearfar-runs"}
    assert left == set()
    assert not any((tmp_path / "nearfar-runs").glob("*"))


def test_a_directory_without_permission_is_refused(tmp_path: Path) -> None:
    done = run("bench", "mapped", "--path", "/proc/self/nearfar", cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert "next:" in done.stderr


def test_a_full_file_system_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    before = shared_memory.files()
    done = run("bench", "stream", "--tier", "shm:", "--size", "1TiB", cwd=tmp_path)
    assert done.returncode == 3
    assert "do not fit in shm:" in done.stderr
    assert shared_memory.left_behind(before) == set()
