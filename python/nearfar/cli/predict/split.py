"""``nearfar predict split``."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from nearfar.cli import flags, ranges
from nearfar.records.choices import SplitKernel, SplitModel

Contention = Annotated[Path, flags.text("--contention", "M.json", "Model of far-to-far copies.")]
Host = Annotated[
    str, flags.text("--host", "HOST", "Host with the caches: xeon-6130, this (measured), a file.")
]
Rows = Annotated[int, flags.count("--rows", metavar="M")]
Columns = Annotated[int, flags.count("--cols")]
ElementBytes = Annotated[int, flags.count("--element-bytes", most=ranges.MAX_ELEMENT_BYTES)]
Kernel = Annotated[SplitKernel, typer.Option("--kernel", help="Mean of the eight neighbors.")]
Threads = Annotated[
    int | None,
    flags.count(
        "--threads",
        least=2,
        most=ranges.MAX_THREADS,
        help="Find the best split of this many threads.",
    ),
]
FarRows = Annotated[
    int | None,
    flags.count(
        "--far-rows",
        metavar="R",
        least=0,
        help="Rows in far memory (default: the balanced number).",
    ),
]
SoftwareNs = Annotated[
    float | None,
    flags.nanoseconds(
        "--software-ns", "Software cost of an element on the far side in ns; without --calibrate."
    ),
]
Model = Annotated[
    SplitModel, typer.Option("--model", help="nearfar, or oslo: only E·16/B on each side.")
]


def split(
    contention: Contention,
    host: Host,
    rows: Rows,
    cols: Columns,
    element_bytes: ElementBytes = 8,
    kernel: Kernel = "stencil8",  # its only value
    version: flags.BorderVersion = "direct",
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    threads: Threads = None,
    far_rows: FarRows = None,
    calibrate: flags.Calibrate = None,
    software_ns: SoftwareNs = None,
    model: Model = "nearfar",
    remeasure: flags.Remeasure = False,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Predict how many rows of a stencil to place in far memory, and the time of a sweep.

    CAL.csv is a measured row of the same version, of any size, or several (columns rows, cols,
    far_rows, near_threads, far_threads, near_s, far_s, total_s; seconds of one sweep).

    Examples:

        nearfar predict split --contention m.json --host xeon-6130 --rows 31623 --cols 31623
        --version ghost --near-threads 15 --far-threads 1 --calibrate measured.csv --json -

        nearfar predict split --contention m.json --host this --rows 100000 --cols 100000
        --threads 16
    """
    from nearfar import api
    from nearfar.report.printing import show
    from nearfar.report.terminal import predictions

    result = api.predict_split(
        contention,
        api.SplitArray(rows, cols, element_bytes, version),
        api.SplitThreads(near_threads, far_threads, threads),
        host=host,
        remeasure=remeasure,
        cost=api.SplitCost(calibrate, software_ns),
        far_rows=far_rows,
        model=model,
        progress=flags.progress_of(quiet),
    )
    show("predict split", result, predictions.split(result), json)


@wraps(split)
def old_name(**given: Any) -> None:
    """``nearfar split``, the verb's name until version 0.1."""
    from nearfar.report.console import note

    note("nearfar split is deprecated: use nearfar predict split")
    split(**given)


VERBS = (split,)
