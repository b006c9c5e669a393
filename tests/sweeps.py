"""Suite files, and sweeps of them read back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from typer.main import get_command

from nearfar.cli.app import app
from nearfar.cli.verbs import cell_arguments
from nearfar.records.sweep import SweepCell
from nearfar.store import read_run
from nearfar.sweep.suite import Suite
from nearfar.workflows import sweeping

#: Two cells, computed alone.
SMALL = """
title = "Two memories"
verb = "sim"
flags = { pattern = "random", requests = 2000, page-policy = "closed" }
grid = { far = ["ddr4-3200", "pcm-lee"] }
"""
#: Cells that take seconds each, so that a sweep can be stopped among them.
SLOW = """
verb = "sim"
flags = { pattern = "random", engine = "exact" }
grid = { requests = [1000, 3000000, 3000001, 3000002] }
"""


def wanted(suite: Suite, full: bool = False) -> sweeping.SweepRequest:
    arguments_of = partial(cell_arguments, get_command(app))
    return sweeping.SweepRequest(suite, full, None, None, None, arguments_of=arguments_of)


def write(tmp_path: Path, text: str, name: str = "small.toml") -> str:
    (tmp_path / name).write_text(text)
    return name


def cells_of(sweep: Path) -> list[SweepCell]:
    result = read_run(sweep).sections.sweep
    assert result is not None
    return result.cells
