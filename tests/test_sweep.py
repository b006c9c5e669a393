"""`nearfar sweep`: cells kept and found again, endings, the table, the machine's lock."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest
from typer.main import get_command

import nearfar
from conftest import Printed, RunNearfar
from nearfar.cli.app import app, main
from nearfar.cli.verbs import find_verb
from nearfar.profiles import load_profile
from nearfar.records.noise import NoiseRecord
from nearfar.records.sweep import SweepCell, SweepFigure, SweepResult
from nearfar.report.html.sections import sweep as section
from nearfar.store import read_run
from nearfar.sweep import cluster, work_order
from nearfar.sweep import table as sweep_table
from nearfar.sweep.machine_lock import machine_lock
from nearfar.sweep.scratch import UNDER_WAY
from nearfar.sweep.suite import Value, load_suite
from nearfar.workflows import sweeping
from sweeps import SLOW, SMALL, cells_of, wanted, write
from tracing import needs_emulator


def test_finished_cells_are_not_run_again(
    tmp_path: Path, in_tmp_path: None, printed: Printed
) -> None:
    suite = write(tmp_path, SMALL)
    assert main(["sweep", suite]) == 0
    assert "2 of 2 cells finished: sim." in printed().out
    sweep = tmp_path / "nearfar-runs" / "sweep-small"
    first = cells_of(sweep)
    assert [c.varied for c in first] == [{"far": "ddr4-3200"}, {"far": "pcm-lee"}]
    # One memory more, which there is not: it fails, and the others are not run again.
    more = write(tmp_path, SMALL.replace('"pcm-lee"', '"pcm-lee", "pcm-leo"'))
    assert main(["sweep", more]) == 2
    output = printed()
    assert "found again: 2 of 3 cells" in output.err
    assert "there is no device profile pcm-leo" in output.err
    assert "1 cell failed" in output.out
    now = cells_of(sweep)
    assert [c.status for c in now] == ["finished", "finished", "failed"]
    assert [c.started for c in now[:2]] == [c.started for c in first]
    assert "pcm-leo" in (sweep / "report.html").read_text()


def test_a_cell_has_the_result_of_its_verb(tmp_path: Path, in_tmp_path: None) -> None:
    assert main(["sweep", write(tmp_path, SMALL), "--out", "s", "--quiet"]) == 0
    typed = "sim --pattern random --requests 2000 --far pcm-lee --page-policy closed"
    assert main([*typed.split(), "--json", "by-hand.json"]) == 0
    by_hand = json.loads((tmp_path / "by-hand.json").read_text())
    table = polars.read_parquet(tmp_path / "s" / "results.parquet")
    assert table["cell"].n_unique() == 2
    mine = table.filter(polars.col("grid.far") == "pcm-lee")
    for key in ("time_s", "energy_J"):
        row = mine.filter((polars.col("key") == key) & (polars.col("path") == ""))
        assert row["value"].to_list() == [by_hand[key]]
        assert row["origin"].to_list() == ["simulated"]


@pytest.mark.parametrize(("host", "alone"), [("this", True), ("xeon-5218r", False)])
def test_a_prediction_that_measures_its_host_runs_alone(host: str, alone: bool) -> None:
    values: dict[str, Value] = {"far": "ucy-optane", "host": host, "ops": 1000}
    assert find_verb(get_command(app), "predict map-get").measures(values) is alone


def test_measured_cells_are_records(tmp_path: Path, in_tmp_path: None, printed: Printed) -> None:
    suite = write(
        tmp_path,
        """
        [[run]]
        verb = "bench sort"
        flags = { n = 1024, runs = 5 }
        [[run]]
        verb = "predict map-get"
        flags = { far = "ucy-optane", host = "xeon-5218r", model = "structure" }
        grid = { ops = [1000] }
    """,
    )
    assert main(["sweep", suite, "--out", "s", "--json", "-"]) == 0
    document = json.loads(printed().out)
    measured, predicted = document["sections"]["sweep"]["cells"]
    assert (measured["verb"], predicted["verb"]) == ("bench sort", "predict map-get")
    record = tmp_path / "s" / "cells" / measured["id"]
    assert read_run(record).sections.program is not None
    assert (record / "samples.jsonl").exists()
    assert measured["machine"] == document["machine"]["id"]
    assert document["noise"]["foreign_cpus"] == measured["noise"]["foreign_cpus"]
    origins = [{f["provenance"]["origin"] for f in c["figures"]} for c in (measured, predicted)]
    assert origins == [{"measured"}, {"modelled"}]
    assert main(["show", "s"]) == 0
    assert "nearfar bench sort" in printed().out
    assert main(["compare", "s", "s"]) == 0


def test_disturbed_cells_are_marked() -> None:
    noises = [NoiseRecord.model_construct(noisy=noisy) for noisy in (True, False)] + [None]
    cells = [
        SweepCell.model_construct(
            verb="bench sort", status="finished", varied={"n": i}, figures=[], noise=noise
        )
        for i, noise in enumerate(noises)
    ]
    result = SweepResult.model_construct(suite="s", planned=3, cells=cells)
    assert "1 cell disturbed: do not rely on their figures." in section.finding(result)
    table = section.cells_table(result, "bench sort")
    assert table.columns == ["n", "Verdict"]
    assert [row[1].text for row in table.rows] == ["disturbed", "steady", "steady"]


def test_cells_of_several_engines_name_theirs() -> None:
    """By default nearfar chooses the engine, for each cell."""
    cells = [
        SweepCell.model_construct(
            verb="sim",
            status="finished",
            varied={"far": name},
            noise=None,
            figures=[SweepFigure(path="", key="time_s", value=1.0, conditions={"engine": engine})],
        )
        for name, engine in (("ddr4-3200", "exact"), ("pcm-lee", "fast"), ("hbm2-2000", "fast"))
    ]
    result = SweepResult.model_construct(suite="s", planned=3, cells=cells)
    table = section.cells_table(result, "sim")
    assert table.columns[-1] == "engine"
    assert [row[-1].text for row in table.rows] == ["exact", "fast", "fast"]
    result = SweepResult.model_construct(suite="s", planned=2, cells=cells[1:])
    assert "engine" not in section.cells_table(result, "sim").columns


def started_sweep(tmp_path: Path, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "nearfar.cli.app",
            "sweep",
            "slow.toml",
            "--out",
            "s",
            "--jobs",
            "1",
            *flags,
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_first_cell(tmp_path: Path) -> None:
    end = time.monotonic() + 600
    while not list(tmp_path.glob("s/cells/sim-*/cell.json")):
        assert time.monotonic() < end, "no cell was kept in time"
        time.sleep(0.02)


def test_a_killed_sweep_is_resumed(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    write(tmp_path, SLOW, "slow.toml")
    child = started_sweep(tmp_path)
    wait_for_first_cell(tmp_path)
    child.kill()
    child.communicate()
    kept = {file.parent.name: file.read_bytes() for file in tmp_path.glob("s/cells/*/cell.json")}
    assert 1 <= len(kept) < 4
    write(tmp_path, SLOW.replace("3000000, 3000001, 3000002", "3000"), "slow.toml")
    done = run_nearfar("sweep", "slow.toml", "--out", "s")
    assert done.code == 0, done.stderr
    assert "found again: 1 of 2 cells" in done.stderr
    for name, content in kept.items():
        assert (tmp_path / "s" / "cells" / name / "cell.json").read_bytes() == content
    assert list(tmp_path.glob(f"s/cells/{UNDER_WAY}*")) == []


def test_ctrl_c_keeps_finished_cells(tmp_path: Path) -> None:
    write(tmp_path, SLOW, "slow.toml")
    child = started_sweep(tmp_path)
    wait_for_first_cell(tmp_path)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=600)
    assert child.returncode == 130, stderr
    assert "of 4 cells are kept in s; the same command goes on" in stderr
    assert "Traceback" not in stderr
    assert read_run(tmp_path / "s").status == "interrupted"
    assert 1 <= len(cells_of(tmp_path / "s")) < 4
    assert list(tmp_path.glob(f"s/cells/{UNDER_WAY}*")) == []
    assert polars.read_parquet(tmp_path / "s" / "results.parquet").height > 0


def test_a_measurement_has_the_machine_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearfar.sweep.machine_lock._FOLDERS", (tmp_path,))
    waited: list[str] = []
    with machine_lock(alone=False, waits=lambda: waited.append("a")):
        other = _in_another_process(tmp_path, "False")
        assert other.returncode == 0, other.stderr
        blocked = _in_another_process(tmp_path, "True")
    assert blocked.returncode == 5, blocked.stderr
    with machine_lock(alone=True, waits=lambda: waited.append("b")):
        assert _in_another_process(tmp_path, "False").returncode == 5
    assert _in_another_process(tmp_path, "True").returncode == 0
    assert waited == []


def _in_another_process(folder: Path, alone: str) -> subprocess.CompletedProcess[str]:
    """Ends with 5 where it would have to wait. ``folder``: of the lock, which other tests take."""
    script = (
        "import os\nfrom pathlib import Path\nfrom nearfar.sweep import machine_lock as module\n"
        f"module._FOLDERS = (Path({str(folder)!r}),)\n"
        f"with module.machine_lock(alone={alone}, waits=lambda: os._exit(5)): pass\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_changed_input_file_changes_the_cell(tmp_path: Path, in_tmp_path: None) -> None:
    suite = load_suite(write(tmp_path, "verb = 'sim'\nflags = { counts = 'c.json' }\n"))
    found = []
    for content in ("{}", "{ }", "{}"):
        (tmp_path / "c.json").write_text(content)
        found += sweeping.work_orders(wanted(suite))
    assert found[0].id == found[2].id != found[1].id


@pytest.mark.parametrize(
    ("module", "extra", "flags"),
    [("distributed", "cluster", ["--scheduler", "tcp://127.0.0.1:1"])],
)
def test_a_missing_package_is_reported(
    module: str,
    extra: str,
    flags: list[str],
    tmp_path: Path,
    in_tmp_path: None,
    printed: Printed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["sweep", write(tmp_path, SMALL), "--out", "s", *flags]) == 3
    assert f"pip install 'nearfar[{extra}]'" in printed().err
    assert list(tmp_path.glob("s/cells/*")) == []


def test_without_polars_the_table_is_csv(
    tmp_path: Path, in_tmp_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_table, "missing", lambda extra: ["polars"])
    monkeypatch.setitem(sys.modules, "polars", None)
    assert main(["sweep", write(tmp_path, SMALL), "--out", "s", "--quiet"]) == 0
    assert not (tmp_path / "s" / "results.parquet").exists()
    text = (tmp_path / "s" / "results.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["grid.far"] for row in rows} == {"ddr4-3200", "pcm-lee"}
    assert all(float(row["value"]) >= 0 and "traffic" not in row["conditions"] for row in rows)


def test_the_csv_of_a_sweep_is_its_table(
    tmp_path: Path, in_tmp_path: None, printed: Printed
) -> None:
    suite = write(tmp_path, SMALL.replace("flags = {", "flags = { csv = true,"))
    assert main(["sweep", suite, "--out", "s", "--quiet", "--csv", "mine.csv"]) == 0
    assert not (tmp_path / "table.csv").exists(), "the cells' tables are in their folders"
    assert len(list(tmp_path.glob("s/cells/*/table.csv"))) == 2
    assert (tmp_path / "mine.csv").read_text() == (tmp_path / "s" / "results.csv").read_text()
    printed()
    assert main(["sweep", suite, "--out", "s", "--quiet", "--csv", "-"]) == 0
    assert printed().out == (tmp_path / "mine.csv").read_text()


def test_a_scheduler_that_does_not_answer(
    tmp_path: Path, in_tmp_path: None, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.5)
    suite = write(tmp_path, SMALL)
    assert main(["sweep", suite, "--scheduler", "here"]) == 2
    assert main(["sweep", suite, "--scheduler", "tcp://127.0.0.1:1"]) == 3
    complaint = printed().err
    assert "no scheduler answers at tcp://127.0.0.1:1" in complaint
    assert "dask scheduler" in complaint
    assert "Traceback" not in complaint


@needs_emulator
def test_every_file_that_a_verb_wrote_is_kept(tmp_path: Path, in_tmp_path: None) -> None:
    (tmp_path / "program.c").write_text("""
        #include <stdlib.h>
        int main(void) {
          volatile char *block = malloc(1 << 22);
          for (long i = 0; i < 1 << 22; i++) block[i * 4099 % (1 << 22)]++;
        }
    """)
    subprocess.run(["cc", "-g", "-O1", "program.c", "-o", "program"], check=True, cwd=tmp_path)
    suite = write(
        tmp_path,
        """
        [[run]]
        verb = "advise"
        flags = { program = ["./program"], host = "xeon-5218r", emulate = true }
        grid = { near-budget = ["2MiB"] }
        [[run]]
        verb = "probe"
        flags = { quick = true, time = "2", region = "64MiB" }
        [[run]]
        verb = "bench compete"
        flags = { far = "dram", near-threads = 1, far-threads = 1, size = "1MiB", csv = true }
        grid = { runs = [1] }
    """,
    )
    assert main(["sweep", suite, "--out", "s", "--quiet"]) == 0
    advised, probed, competed = (tmp_path / "s" / "cells" / cell.id for cell in cells_of(Path("s")))
    result = read_run(advised).sections.advice
    assert result is not None
    assert Path(str(result.plan)).resolve() == advised / "program.plan"
    run = ["run", "--plan", str(result.plan), "--tier", "far=dram", "--", "./program"]
    assert main(run) == 0
    profile = load_profile(str(probed / "profile.toml"))
    assert profile.name == probed.name
    assert (competed / "table.csv").read_text().startswith("near_threads,far_threads,near_MBps")
    for cell in (advised, probed, competed):
        assert {"run.json", "cell.json"} <= {file.name for file in cell.iterdir()}
    for cell in (probed, competed):
        assert (cell / "samples.jsonl").exists()


def test_another_build_changes_the_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text(f"# {folder}")
    identities = []
    for folder in ("one", "two", "one"):
        monkeypatch.setattr(nearfar, "__file__", str(tmp_path / folder / "__init__.py"))
        work_order.build.cache_clear()
        identities.append(work_order.identify("sim", ["-n", "1"], work_order.digest_of))
    work_order.build.cache_clear()
    assert identities[0] == identities[2] != identities[1]
