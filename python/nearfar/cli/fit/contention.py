"""``nearfar fit contention``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags

Rows = Annotated[Path, typer.Argument(metavar="ROWS.csv", help="Measured rows of contention.")]
Out = Annotated[Path, flags.text("--out", "FILE", "File of the model, as JSON.")]


def contention(rows: Rows, out: Out, quiet: flags.Quiet = False) -> None:
    """Fit a model of contention: how two sides that copy concurrently slow each other down.

    ROWS.csv has the columns near_threads, far_threads, near_MBps and far_MBps (10^6 bytes/s, summed
    over the threads of a side); more columns are ignored. At least three rows must use all threads
    of the machine; rows with fewer threads show the effect of a shorter queue.

    Examples:

        nearfar fit contention rows.csv --out contention.json
    """
    from nearfar.model import contention_fit
    from nearfar.model.contention_file import write_model
    from nearfar.report.console import note, print_result
    from nearfar.report.terminal.predictions import contention_model

    fitted = contention_fit.fit(contention_fit.read_measured(rows))
    write_model(fitted, out)
    print_result(contention_model(fitted))
    if not quiet:
        note(f"model: {out}")
