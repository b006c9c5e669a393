"""``nearfar report``: the HTML page of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Record = Annotated[
    Path,
    typer.Argument(
        metavar="RECORD", help="A run directory, such as nearfar-runs/…", show_default=False
    ),
]


def report(
    record: Record,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The page (default: report.html in the record).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the HTML report of a record: one file, with pictures, that needs no network.

    Earlier runs of the same machine beside the record are compared with it.

    Example: `nearfar report nearfar-runs/20250102T030405Z-study --out today.html`
    """  # fmt: skip
    from nearfar.report.page import FILE_NAME, write_page
    from nearfar.store import previous_runs, read_run

    run = read_run(record)
    directory = record if record.is_dir() else record.parent
    machine = run.machine.get("id")
    previous = previous_runs(run.verb, machine, directory.absolute().parent) if machine else []
    print(write_page(out or directory / FILE_NAME, run, previous))
