"""`nearfar sweep`: suites, cells kept and found again, endings, the table, the machine's lock."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest

from conftest import Outcome, RunNearfar
from nearfar.cli import sweeping
from nearfar.cli.main import main
from nearfar.records.sweep import SweepCell
from nearfar.store import read_run
from nearfar.sweep.machine_lock import machine_lock
from nearfar.sweep.suite import load_suite, suite_names

#: Two axes, six cells, computed alone.
SMALL = """
title = "Two memories, three ways to wait"
verb = "sim"
flags = { pattern = "random", n = 2000 }
grid = { far = ["pcm-lee", "cxl-ddr5"], page-policy = ["open", "closed", "timeout"] }
"""
#: Cells that take seconds each, so that a sweep can be stopped among them.
SLOW = """
verb = "sim"
flags = { pattern = "random", engine = "exact" }
grid = { n = [1000, 2000000, 2000001, 2000002] }
"""


def write(tmp_path: Path, text: str, name: str = "small.toml") -> str:
    (tmp_path / name).write_text(text)
    return name


def cells_of(sweep: Path) -> list[SweepCell]:
    result = read_run(sweep).sections.sweep
    assert result is not None
    return result.cells


def test_a_grid_is_run_kept_and_found_again(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    suite = write(tmp_path, SMALL)
    done = run_nearfar("sweep", suite)
    assert done.code == 0, done.stderr
    sweep = tmp_path / "nearfar-runs" / "sweep-small"
    first = cells_of(sweep)
    assert [tuple(c.varied.values()) for c in first] == [
        (far, policy) for far in ("pcm-lee", "cxl-ddr5") for policy in ("open", "closed", "timeout")
    ]
    assert "6 of 6 cells finished: sim." in done.stdout
    again = run_nearfar("sweep", suite)
    assert again.code == 0
    assert "found again: 6 of 6 cells" in again.stderr
    assert [c.started for c in cells_of(sweep)] == [c.started for c in first]
    # One figure more to go through: the others are not run again.
    more = SMALL.replace('"cxl-ddr5"]', '"cxl-ddr5", "ddr4-3200"]')
    assert "found again: 6 of 9" in run_nearfar("sweep", write(tmp_path, more)).stderr


def test_a_cell_gives_what_the_verb_gives(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    assert run_nearfar("sweep", write(tmp_path, SMALL), "--out", "s", "--quiet").code == 0
    by_hand = json.loads(run_nearfar(
        "sim", "--pattern", "random", "-n", "2000", "--far", "cxl-ddr5", "--page-policy", "closed",
        "--json", "-",
    ).stdout)  # fmt: skip
    table = polars.read_parquet(tmp_path / "s" / "results.parquet")
    mine = table.filter(
        (polars.col("grid.far") == "cxl-ddr5") & (polars.col("grid.page-policy") == "closed")
    )
    for key in ("time_s", "energy_J"):
        row = mine.filter((polars.col("key") == key) & (polars.col("path") == ""))
        assert row["value"].to_list() == [by_hand[key]]
        assert row["origin"].to_list() == ["simulated"]
    assert table["cell"].n_unique() == 6


def test_measured_cells_are_records(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    suite = write(tmp_path, """
        [[run]]
        verb = "bench sort"
        flags = { n = 1024, runs = 5 }
        grid = { algorithm = ["quick", "merge"] }
        [[run]]
        verb = "predict map-get"
        flags = { far = "ucy-optane", host = "xeon-5218r", model = "structure" }
        grid = { ops = [1000, 2000] }
    """)  # fmt: skip
    done = run_nearfar("sweep", suite, "--out", "s", "--json", "-")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    cells = document["sections"]["sweep"]["cells"]
    assert [cell["verb"] for cell in cells] == ["bench sort"] * 2 + ["predict map-get"] * 2
    record = tmp_path / "s" / "cells" / cells[0]["id"]
    assert read_run(record).sections.program is not None
    assert (record / "samples.jsonl").exists()
    assert cells[0]["machine"] == document["machine"]["id"]
    assert document["noise"]["foreign_cpus"] == max(
        cell["noise"]["foreign_cpus"] for cell in cells[:2]
    )
    origins = {f["provenance"]["origin"] for c in cells[:2] for f in c["figures"]}
    assert origins == {"measured"}
    shown = run_nearfar("show", "s")
    assert "nearfar bench sort" in shown.stdout
    page = (tmp_path / "s" / "report.html").read_text()
    assert "nearfar predict map-get" in page
    assert run_nearfar("compare", "s", "s").code == 0


def started_sweep(tmp_path: Path, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "nearfar.cli.main", "sweep", "slow.toml", "--out", "s",
         "--jobs", "1", *flags],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_first_cell(tmp_path: Path) -> None:
    end = time.monotonic() + 60
    while not list(tmp_path.glob("s/cells/sim-*/cell.json")):
        assert time.monotonic() < end, "no cell was kept in time"
        time.sleep(0.02)


def test_a_killed_sweep_goes_on_where_it_was(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    write(tmp_path, SLOW, "slow.toml")
    child = started_sweep(tmp_path)
    wait_for_first_cell(tmp_path)
    child.kill()
    child.communicate()
    kept = {file.parent.name: file.read_bytes() for file in tmp_path.glob("s/cells/*/cell.json")}
    assert 1 <= len(kept) < 4
    write(tmp_path, SLOW.replace("2000000, 2000001, 2000002", "3000"), "slow.toml")
    done = run_nearfar("sweep", "slow.toml", "--out", "s")
    assert done.code == 0, done.stderr
    assert "found again: 1 of 2 cells" in done.stderr
    for name, content in kept.items():
        assert (tmp_path / "s" / "cells" / name / "cell.json").read_bytes() == content
    assert list(tmp_path.glob("s/cells/under-way-*")) == []


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    write(tmp_path, SLOW, "slow.toml")
    child = started_sweep(tmp_path)
    wait_for_first_cell(tmp_path)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130, stderr
    assert "of 4 cells are kept in s; the same command goes on" in stderr
    assert "Traceback" not in stderr
    assert read_run(tmp_path / "s").status == "interrupted"
    assert 1 <= len(cells_of(tmp_path / "s")) < 4
    assert list(tmp_path.glob("s/cells/under-way-*")) == []
    assert polars.read_parquet(tmp_path / "s" / "results.parquet").height > 0


def test_a_failed_cell_is_told_and_the_others_are_kept(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = SMALL.replace('"pcm-lee", "cxl-ddr5"', '"pcm-lee", "pcm-leo"')
    done = run_nearfar("sweep", write(tmp_path, text), "--out", "s")
    assert done.code == 2
    assert done.stderr.count("failed: nearfar sim") == 3
    assert "there is no device profile pcm-leo" in done.stdout
    assert [c.status for c in cells_of(tmp_path / "s")] == ["finished"] * 3 + ["failed"] * 3
    assert "found again: 3 of 6" in run_nearfar("sweep", "small.toml", "--out", "s").stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("verb = 'fly'", "run 1: there is no verb 'fly'"),
        ("verb = 'sims'", "did you mean sim?"),
        ("verb = 'bench'", "'bench' is a group of verbs"),
        ("verb = 'report'", "'report' gives no result to collect"),
        ("verb = 'sim'\nflags = { page-polcy = 'open' }", "did you mean page-policy?"),
        ("verb = 'sim'\nflags = { page-policy = 'shut' }", "Invalid value for '--page-policy'"),
        ("verb = 'sim'\nflags = { n = 'many' }", "Invalid value for '-n'"),
        ("verb = 'sim'\nflags = { curve = 1 }", "curve is a flag without a value"),
        ("verb = 'sim'\nflags = { far = true }", "far wants a value, not true"),
        ("verb = 'sim'\nflags = { json = '-' }", "json is set by the sweep itself"),
        ("verb = 'sim'\ngrid = { far = [] }", "run 1: grid.far is empty"),
        ("verb = 'sim'\ngrid = { far = 'pcm-lee' }", "run.1.grid.far"),
        ("verb = 'sim'\nflags = { far = 'a' }\ngrid = { far = ['b'] }", "far is among the flags"),
        ("verb = 'sim'\ngird = { far = ['b'] }", "gird: Extra inputs"),
        ("verb = 'sim'\n[[run]]\nverb = 'sim'", "verb stands beside [[run]]"),
        ("verb = 'predict map-get'", "Missing option '--far'"),
        ("verb = ", "Invalid value (at"),
        ("title = 'empty'", "run: Field required"),
    ],
)
def test_suites_that_are_refused(
    text: str, complaint: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = run_nearfar("sweep", write(tmp_path, text), "--dry-run")
    done.assert_refused(2)
    assert complaint in done.stderr


def test_sweeps_that_are_refused(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    run_nearfar("sweep", "no-such").assert_refused(2)
    suite = write(tmp_path, SMALL)
    (tmp_path / "other").mkdir()
    run_nearfar("sweep", suite, "--out", "other").assert_refused(2)
    (tmp_path / "s" / "cells").mkdir(parents=True)
    with (tmp_path / "lock").open("w"):
        held = os.open(tmp_path / "s" / "cells", os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run_nearfar("sweep", suite, "--out", "s")
        os.close(held)
    done.assert_refused(2)
    assert "another sweep is at work in s" in done.stderr


@pytest.mark.parametrize("name", suite_names())
@pytest.mark.parametrize("full", [False, True])
def test_every_shipped_suite_is_one(name: str, full: bool) -> None:
    suite = load_suite(name)
    found = sweeping.orders(sweeping.Wanted(suite, full, None, None, None, False, True))
    assert len(found) >= 2
    assert suite.title
    assert suite.source


def test_the_published_experiments_are_shipped() -> None:
    assert suite_names() == ["daxbench64", "nicosia", "oslo", "seoul", "wscad"]


@pytest.mark.long
@pytest.mark.parametrize("name", suite_names())
def test_shipped_suites_run_here(name: str, tmp_path: Path, run_nearfar: RunNearfar) -> None:
    done = run_nearfar("sweep", name, timeout=600)
    assert done.code == 0, done.stderr
    cells = cells_of(tmp_path / "nearfar-runs" / f"sweep-{name}")
    assert all(cell.figures for cell in cells)


def test_nothing_runs_beside_a_measurement() -> None:
    waited: list[str] = []
    with machine_lock(alone=False, waits=lambda: waited.append("a")):
        other = _in_another_process("False")
        assert other.returncode == 0, other.stderr
        blocked = _in_another_process("True")
    assert blocked.returncode == 5, blocked.stderr
    with machine_lock(alone=True, waits=lambda: waited.append("b")):
        assert _in_another_process("False").returncode == 5
    if not waited:  # else somebody sweeps on this machine, and we waited for that
        assert _in_another_process("True").returncode == 0


def _in_another_process(alone: str) -> subprocess.CompletedProcess[str]:
    """Ends with 5 where it would have to wait."""
    script = (
        "import os\nfrom nearfar.sweep.machine_lock import machine_lock\n"
        f"with machine_lock(alone={alone}, waits=lambda: os._exit(5)): pass\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_changed_file_is_another_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    counts = {"near": {"reads": 1, "writes": 1}, "far": {"reads": 5, "writes": 1}}
    (tmp_path / "c.json").write_text(json.dumps(counts))
    suite = write(tmp_path, "verb = 'sim'\nflags = { counts = 'c.json' }\n")
    assert main(["sweep", suite, "--out", "s", "--quiet"]) == 0
    (first,) = cells_of(tmp_path / "s")
    counts["far"]["reads"] = 50
    (tmp_path / "c.json").write_text(json.dumps(counts))
    assert main(["sweep", suite, "--out", "s", "--quiet"]) == 0
    (second,) = cells_of(tmp_path / "s")
    times = [next(f.value for f in c.figures if f.key == "time_s") for c in (first, second)]
    assert times[0] < times[1]


def test_without_polars_nothing_is_started(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = _without(run_nearfar, tmp_path, "polars", "--out", "s")
    done.assert_refused(3)
    assert "pip install polars" in done.stderr
    assert not (tmp_path / "s").exists()


def _without(run: RunNearfar, tmp_path: Path, module: str, *flags: str) -> Outcome:
    """A sweep where a module is not installed."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / f"{module}.py").write_text("raise ImportError('not installed')\n")
    suite = write(tmp_path, SMALL)
    return run("sweep", suite, *flags, env={"PYTHONPATH": str(hidden)})


def test_a_scheduler_that_cannot_be_had(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    suite = write(tmp_path, SMALL)
    run_nearfar("sweep", suite, "--scheduler", "here").assert_refused(2)
    done = run_nearfar("sweep", suite, "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 3
    assert "no scheduler answers at tcp://127.0.0.1:1" in done.stderr
    assert "dask scheduler" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_distributed_it_is_said(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = _without(run_nearfar, tmp_path, "distributed", "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 3
    assert "pip install distributed" in done.stderr
