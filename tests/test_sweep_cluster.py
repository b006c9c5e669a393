"""`nearfar sweep --scheduler`: a scheduler and two workers on the loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.store import read_run
from nearfar.sweep.scratch import UNDER_WAY
from sweeps import SLOW, SMALL, write

_PATIENCE_S = 600


@contextmanager
def started(log: Path, *command: str) -> Iterator[int]:
    with log.open("w") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", *command], stdout=out, stderr=subprocess.STDOUT, cwd=log.parent
        )
        try:
            yield child.pid
        finally:
            child.terminate()
            child.wait(timeout=_PATIENCE_S)


def reported(log: Path, pattern: str) -> str:
    """The text of a log, once it has one."""
    end = time.monotonic() + _PATIENCE_S
    while not (found := re.search(pattern, log.read_text())):
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    return found[1]


@contextmanager
def cluster(tmp_path: Path, *names: str) -> Iterator[tuple[str, dict[str, int]]]:
    """The address of a scheduler with workers, and the process of each worker."""
    with ExitStack() as processes:
        log = tmp_path / "scheduler.log"
        processes.enter_context(
            started(
                log,
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
            )
        )
        address = reported(log, r"Scheduler at: +(tcp://127\.0\.0\.1:\d+)")
        workers = {
            name: processes.enter_context(
                started(
                    tmp_path / f"{name}.log",
                    "distributed.cli.dask_worker",
                    address,
                    "--name",
                    name,
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--host",
                    "127.0.0.1",
                    "--no-nanny",
                )
            )
            for name in names
        }
        for name in names:
            reported(tmp_path / f"{name}.log", r"(Registered to)")
        yield address, workers


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler with two workers."""
    with cluster(tmp_path, "one", "two") as (address, _):
        yield address


def test_a_sweep_on_two_workers(scheduler: str, run_nearfar: RunNearfar, tmp_path: Path) -> None:
    text = SMALL + "\n[[run]]\nverb = 'bench sort'\nflags = { n = 1024, runs = 5 }\n"
    text = text.replace('verb = "sim"', '[[run]]\nverb = "sim"', 1)
    done = run_nearfar("sweep", write(tmp_path, text), "--out", "s", "--scheduler", scheduler)
    assert done.code == 0, done.stderr
    result = read_run(tmp_path / "s").sections.sweep
    assert result is not None
    assert [cell.status for cell in result.cells] == ["finished"] * 3
    assert (tmp_path / "s" / "cells" / result.cells[-1].id / "run.json").exists()
    for name in ("one", "two"):
        assert "Traceback" not in (tmp_path / f"{name}.log").read_text()


def test_a_sweep_whose_only_worker_is_killed_ends_and_leaves_nothing(
    run_nearfar: RunNearfar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    suite = write(tmp_path, SLOW)
    with cluster(tmp_path, "one") as (address, workers), ThreadPoolExecutor(1) as pool:
        sweep = pool.submit(
            run_nearfar,
            "sweep",
            suite,
            "--out",
            "s",
            "--scheduler",
            address,
            env={"TMPDIR": str(temporary)},
        )
        end = time.monotonic() + _PATIENCE_S
        while not list(temporary.glob(f"{UNDER_WAY}*")):
            assert time.monotonic() < end, "no cell was begun"
            time.sleep(0.05)
        os.kill(workers["one"], signal.SIGKILL)
        done = sweep.result(_PATIENCE_S)
    done.assert_refused(3, "has no workers any more: the last one was lost")
    assert "finished cells are kept" in done.stderr
    assert list(temporary.glob(f"{UNDER_WAY}*")) == []
