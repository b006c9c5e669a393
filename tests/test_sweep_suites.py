"""Suite files of `nearfar sweep`: shipped, documented, invalid; dry runs."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from conftest import Printed, RunNearfar
from nearfar.cli.app import main
from nearfar.sweep.suite import load_suite, suite_names
from nearfar.workflows import sweeping
from sweeps import SMALL, cells_of, wanted, write


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("verb = 'fly'", "run 1: unknown verb 'fly'"),
        ("verb = 'sims'", "did you mean sim?"),
        ("verb = 'bench'", "'bench' is a group of verbs"),
        ("verb = 'report'", "'report' has no JSON result"),
        ("verb = 'sim'\nflags = { page-polcy = 'open' }", "did you mean page-policy?"),
        ("verb = 'sim'\nflags = { page-policy = 'shut' }", "Invalid value for '--page-policy'"),
        ("verb = 'sim'\nflags = { n = 'many' }", "Invalid value for '--requests'"),
        ("verb = 'sim'\nflags = { curve = 1 }", "curve is a flag without a value"),
        ("verb = 'sim'\nflags = { far = true }", "far requires a value, not true"),
        ("verb = 'sim'\nflags = { json = '-' }", "json is set by the sweep itself"),
        ("verb = 'sim'\ngrid = { far = [] }", "run 1: grid.far is empty"),
        ("verb = 'sim'\ngrid = { far = 'pcm-lee' }", "run.1.grid.far"),
        ("verb = 'sim'\nflags = { far = 'a' }\ngrid = { far = ['b'] }", "far is among the flags"),
        ("verb = 'sim'\ngird = { far = ['b'] }", "gird: Extra inputs"),
        ("verb = 'sim'\n[[run]]\nverb = 'sim'", "verb is used together with [[run]]"),
        ("verb = 'predict map-get'", "Missing option '--far'"),
        ("verb = 'bench intset'\nflags = { structure = 'rbtree' }", "unknown set 'rbtree'"),
        ("verb = ", "Invalid value (at"),
        ("title = 'empty'", "run: Field required"),
    ],
)
def test_invalid_suites_are_refused(
    text: str, complaint: str, tmp_path: Path, in_tmp_path: None, printed: Printed
) -> None:
    assert main(["sweep", write(tmp_path, text), "--dry-run"]) == 2
    output = printed()
    assert complaint in output.err
    assert "\n  next: " in output.err
    assert output.out == ""


def test_invalid_sweeps_are_refused(tmp_path: Path, in_tmp_path: None, printed: Printed) -> None:
    assert main(["sweep", "no-such"]) == 2
    suite = write(tmp_path, SMALL)
    (tmp_path / "other").mkdir()
    assert main(["sweep", suite, "--out", "other"]) == 2
    (tmp_path / "s" / "cells").mkdir(parents=True)
    held = os.open(tmp_path / "s" / "cells", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    printed()
    assert main(["sweep", suite, "--out", "s"]) == 2
    os.close(held)
    assert "another sweep is at work in s" in printed().err


@pytest.mark.parametrize("name", suite_names())
@pytest.mark.parametrize("full", [False, True])
def test_every_shipped_suite_is_valid(name: str, full: bool) -> None:
    suite = load_suite(name)
    found = sweeping.work_orders(wanted(suite, full))
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


def _documented_suite() -> str:
    """The example of docs/formats/suite.md."""
    text = (Path(__file__).parent.parent / "docs" / "formats" / "suite.md").read_text()
    block = text.split("\n    title = ", 1)[1].split("\n## ", 1)[0]
    block = f"    title = {block}"
    return "\n".join(line.removeprefix("    ") for line in block.splitlines())


def test_the_documented_suite_runs(tmp_path: Path, in_tmp_path: None, printed: Printed) -> None:
    assert main(["bench", "sort", "--problem-size", "1024", "--trace", "sort.trace"]) == 0
    printed()
    suite = write(tmp_path, _documented_suite())
    assert main(["sweep", suite, "--dry-run"]) == 0
    commands = printed().out.splitlines()
    assert len([c for c in commands if c.startswith("nearfar advise")]) == 6
    simulations = [c.split()[1:] for c in commands if c.startswith("nearfar sim")]
    assert len(simulations) == 6
    for command in simulations:
        assert main(["sim", "--quiet", *command[1:]]) == 0, printed().err


def test_a_dry_run_finds_flags_that_do_not_go_together(
    tmp_path: Path, in_tmp_path: None, run_nearfar: RunNearfar
) -> None:
    suite = write(
        tmp_path,
        """
        verb = "sim"
        flags = { pattern = "random", near-size = "16MiB" }
        grid = { placement = ["memory-mode", "all-far"] }
    """,
    )
    for flags in (["--dry-run"], []):
        done = run_nearfar("sweep", suite, *flags)
        done.assert_refused(2, "suite small, run 1: ")
        assert "near-size" in done.stderr
    assert not (tmp_path / "nearfar-runs").exists()


def test_a_dry_run_writes_json(tmp_path: Path, in_tmp_path: None, printed: Printed) -> None:
    suite = write(tmp_path, SMALL)
    assert main(["sweep", suite, "--dry-run", "--json", "-"]) == 0
    document = json.loads(printed().out)
    assert [cell["verb"] for cell in document["cells"]] == ["sim", "sim"]
    assert document["cells"][0]["command"].startswith("nearfar sim --pattern random")
    assert main(["sweep", suite, "--dry-run", "--json", "cells.json"]) == 0
    assert printed().out.count("nearfar sim") == 2
    assert json.loads((tmp_path / "cells.json").read_text()) == document
    assert main(["study", "--dry-run", "--time", "100s", "--json", "-"]) == 0
    sections = json.loads(printed().out)["sections"]
    assert sum(section["max_s"] for section in sections) == pytest.approx(100, rel=0.05)
    assert not (tmp_path / "nearfar-runs").exists()


def test_a_suite_cannot_name_the_table_of_a_verb(
    tmp_path: Path, in_tmp_path: None, run_nearfar: RunNearfar
) -> None:
    suite = write(tmp_path, 'verb = "bench compete"\nflags = { csv = "rows.csv" }\n')
    done = run_nearfar("sweep", suite, "--dry-run")
    done.assert_refused(2, "csv is a flag without a value")
