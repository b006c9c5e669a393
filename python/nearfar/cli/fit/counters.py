"""``nearfar fit counters``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags

Table = Annotated[Path, typer.Argument(metavar="COUNTERS.csv", help="Counters by operations.")]
Picture = Annotated[
    Path | None,
    flags.text("--picture", "FILE", "Correlation matrix, as .svg or self-contained .html."),
]


def counters(
    table: Table,
    picture: Picture = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Fit counters as functions of the number of operations.

    COUNTERS.csv has a column `operations` and one column for each counter, size or time. Each is
    fitted as a linear, power, logarithmic or saturating function of the operations; the form with
    the least leave-one-out error is chosen.

    Examples:

        nearfar fit counters counters.csv

        nearfar fit counters counters.csv --picture correlation.svg --json fits.json
    """
    from nearfar.model import counter_fits
    from nearfar.report.charts.correlation import write_picture
    from nearfar.report.console import note, show
    from nearfar.report.terminal import predictions

    result = counter_fits.fit(counter_fits.read_counters(table))
    if picture:
        write_picture(result.correlation, picture)
        if not quiet:
            note(f"picture: {picture}")
    show(predictions.counter_fits(result), result.model_dump_json(indent=1), json)
