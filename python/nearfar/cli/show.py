"""``nearfar show``: a record in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli.options import Json

Record = Annotated[
    Path,
    typer.Argument(
        metavar="RECORD", help="A run directory, such as nearfar-runs/…", show_default=False
    ),
]


def show(record: Record, json: Json = None) -> None:
    """Print a record in the terminal.

    Example: `nearfar show nearfar-runs/20250102T030405Z-study`
    """
    from nearfar.cli.console import print_result, write_json
    from nearfar.store import read_run

    run = read_run(record)
    if json is not None:
        write_json(json, run.model_dump_json(indent=1, exclude_none=True))
    if json != "-":
        from nearfar.report import text

        print_result(text.record(run))
