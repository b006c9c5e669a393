"""``nearfar predict pipeline``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags, ranges


def pipeline(
    near_curve: Annotated[
        Path,
        typer.Option("--near-curve", metavar="CSV", help="Columns threads and copy (MB/s), near."),
    ],
    far_curve: Annotated[
        Path,
        typer.Option("--far-curve", metavar="CSV", help="Columns threads and copy (MB/s), far."),
    ],
    generate: Annotated[
        Path,
        typer.Option(
            "--generate",
            metavar="CSV",
            help="Columns threads, generate_s, analyse_s: the same work in near memory alone.",
        ),
    ],
    elements: Annotated[
        int,
        typer.Option(
            "--elements", metavar="N", min=1, max=ranges.MOST_COUNT, help="Elements of 8 bytes."
        ),
    ],
    iterations: Annotated[
        int, typer.Option("--iterations", metavar="N", min=1, max=ranges.MOST_COUNT)
    ],
    threads: Annotated[
        int,
        typer.Option(
            "--threads",
            metavar="N",
            min=2,
            max=ranges.MOST_THREADS,
            help="Threads to split between both sides.",
        ),
    ],
    calibrate: flags.Calibrate = None,
    json: flags.Json = None,
) -> None:
    """Predict the times of a pipeline, generation near and analysis far, by split of threads.

    Near threads generate the next vector while far threads copy the last one to far memory and
    analyze it there. CAL.csv is one measured row (columns near_threads, far_threads, generate_s,
    generate_idle_s, transfer_s, analyse_s, transfer_idle_s, total_s).

    Examples:

        nearfar predict pipeline --near-curve near.csv --far-curve far.csv --generate alone.csv
        --elements 16000000 --iterations 5000 --threads 16 --json -
    """
    from nearfar.model import pipeline as model
    from nearfar.model.curves import read_curves
    from nearfar.model.tables import BYTES_PER_MB
    from nearfar.report import terminal
    from nearfar.report.printing import show

    alone = read_curves(generate, ("generate_s", "analyse_s"))
    inputs = model.Inputs(
        read_curves(near_curve, ("copy",), scale=BYTES_PER_MB)["copy"],
        read_curves(far_curve, ("copy",), scale=BYTES_PER_MB)["copy"],
        alone["generate_s"],
        alone["analyse_s"],
        model.Work(elements, iterations),
    )
    row = model.read_calibration(calibrate) if calibrate is not None else None
    result = model.predict(inputs, threads, model.calibrate(inputs, row) if row else None)
    if row:
        result.warnings = model.inconsistencies(inputs, row)
    show("predict pipeline", result, terminal.pipeline(result), json)


VERBS = (pipeline,)
