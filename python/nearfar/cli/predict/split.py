"""``nearfar predict split``."""

from __future__ import annotations

from enum import StrEnum
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearfar.cli import flags, ranges
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.model import split as model


class Kernel(StrEnum):
    """The stencil that is applied to the array."""

    STENCIL8 = "stencil8"


class Model(StrEnum):
    """nearfar's model, or the two equations of the Oslo thesis."""

    NEARFAR = "nearfar"
    OSLO = "oslo"


def split(
    contention: Annotated[
        Path, typer.Option("--contention", metavar="M.json", help="Model of far-to-far copies.")
    ],
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="HOST", help="Host with the caches: xeon-6130, this, a file."
        ),
    ],
    rows: Annotated[int, typer.Option("--rows", metavar="M", min=1, max=ranges.MOST_COUNT)],
    cols: Annotated[int, typer.Option("--cols", metavar="N", min=1, max=ranges.MOST_COUNT)],
    element_bytes: Annotated[
        int, typer.Option("--element-bytes", metavar="N", min=1, max=ranges.MOST_ELEMENT_BYTES)
    ] = 8,
    kernel: Annotated[
        Kernel, typer.Option("--kernel", help="Mean of the eight neighbors.")
    ] = Kernel.STENCIL8,
    version: flags.Version = flags.StencilVersion.DIRECT,
    near_threads: flags.MaybeNearThreads = None,
    far_threads: flags.MaybeFarThreads = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=2,
            max=ranges.MOST_THREADS,
            help="Find the best split of this many threads.",
        ),
    ] = None,
    far_rows: Annotated[
        int | None,
        typer.Option(
            "--far-rows",
            metavar="R",
            min=0,
            max=ranges.MOST_COUNT,
            help="Rows in far memory (default: the balanced number).",
        ),
    ] = None,
    calibrate: flags.Calibrate = None,
    software_ns: Annotated[
        float | None,
        typer.Option(
            "--software-ns",
            metavar="NS",
            min=0,
            max=ranges.MOST_NS,
            help="Software cost of an element on the far side in ns; without --calibrate.",
        ),
    ] = None,
    model: Annotated[
        Model, typer.Option("--model", help="oslo: E·16/B of either side and nothing else.")
    ] = Model.NEARFAR,
    json: flags.Json = None,
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
    from nearfar.model import split as splitting
    from nearfar.model.split_cost import software_cost
    from nearfar.report import terminal
    from nearfar.report.printing import show

    machine = _machine(contention, host)
    pairs = _pairs(near_threads, far_threads, threads)
    array = splitting.Array(rows, cols, element_bytes)
    if calibrate and software_ns is not None:
        raise BadInputError(
            "--calibrate and --software-ns both give the software cost", "give one of them"
        )
    measured = splitting.read_calibration(calibrate, element_bytes) if calibrate is not None else []
    known = splitting.calibrate(machine, measured) if measured else None
    if software_ns is not None:
        if not isfinite(software_ns):
            raise BadInputError("--software-ns is not finite", "give a time in nanoseconds")
        known = software_cost(software_ns * 1e-9)
    question = splitting.Question(array, version.value, pairs, far_rows, model.value)
    result = splitting.predict(machine, question, known)
    if measured:
        result.warnings = splitting.inconsistencies(machine, measured)
    show("predict split", result, terminal.split(result), json)


def _machine(contention_file: Path, host: str) -> model.Machine:
    from nearfar.model.contention_file import read_model
    from nearfar.model.split import CacheShare, Machine
    from nearfar.profiles import load_host

    sheet = load_host(host)
    cache = CacheShare(
        sheet.scalar("l2_bytes"), sheet.scalar("l3_bytes"), int(sheet.scalar("l3_ways"))
    )
    return Machine(read_model(contention_file), cache)


def _pairs(
    near_threads: int | None, far_threads: int | None, threads: int | None
) -> list[tuple[int, int]]:
    from nearfar.model.split import splits_of

    if threads is not None:
        if near_threads is not None or far_threads is not None:
            raise BadInputError(
                "--threads conflicts with --near-threads and --far-threads, which fix the split",
                "give either --threads, or both of the others",
            )
        return splits_of(threads)
    if near_threads is None or far_threads is None:
        raise BadInputError(
            "the number of threads is not specified",
            "give --near-threads and --far-threads, or --threads to find the best split",
        )
    return [(near_threads, far_threads)]


@wraps(split)
def old_name(**given: Any) -> None:
    """``nearfar split``, the verb's name until version 0.1."""
    from nearfar.report.console import note

    note("nearfar split is deprecated: use nearfar predict split")
    split(**given)


VERBS = (split,)
