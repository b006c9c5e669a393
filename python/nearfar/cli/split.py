"""``nearfar split``."""

from __future__ import annotations

from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.model import split as model


class Kernel(StrEnum):
    """What is swept over the array."""

    STENCIL8 = "stencil8"


class Model(StrEnum):
    """Ours, or the two equations of the thesis."""

    NEARFAR = "nearfar"
    OSLO = "oslo"


def split(
    contention: Annotated[
        Path, typer.Option("--contention", metavar="M.json", help="Of far to far copies.")
    ],
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Whose caches: xeon-6130, this, a file.")
    ],
    rows: Annotated[int, typer.Option("--rows", metavar="M", min=1)],
    cols: Annotated[int, typer.Option("--cols", metavar="N", min=1)],
    element_bytes: Annotated[int, typer.Option("--element-bytes", metavar="N", min=1)] = 8,
    kernel: Annotated[
        Kernel, typer.Option("--kernel", help="Mean of the eight neighbours.")
    ] = Kernel.STENCIL8,
    version: options.Version = options.StencilVersion.DIRECT,
    near_threads: options.MaybeNearThreads = None,
    far_threads: options.MaybeFarThreads = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=2, help="Search the best split of so many."),
    ] = None,
    far_rows: Annotated[
        int | None,
        typer.Option("--far-rows", metavar="R", min=0, help="Instead of the balanced number."),
    ] = None,
    calibrate: options.Calibrate = None,
    software_ns: Annotated[
        float | None,
        typer.Option(
            "--software-ns",
            metavar="NS",
            min=0,
            help="Far accessor's cost of an element as measured here; without --calibrate.",
        ),
    ] = None,
    model: Annotated[
        Model, typer.Option("--model", help="oslo: E·16/B of either side and nothing else.")
    ] = Model.NEARFAR,
    json: options.Json = None,
) -> None:
    """How many rows of a stencil belong in far memory, and how long a sweep takes.

    CAL.csv is a measured row of the same version, of any size, or several (columns rows, cols,
    far_rows, near_threads, far_threads, near_s, far_s, total_s; seconds of one sweep).

    Examples:

        nearfar split --contention m.json --host xeon-6130 --rows 31623 --cols 31623 --version ghost
        --near-threads 15 --far-threads 1 --calibrate measured.csv --json -

        nearfar split --contention m.json --host this --rows 100000 --cols 100000 --threads 16
    """
    from nearfar.cli.predictions import show
    from nearfar.model import split as splitting
    from nearfar.model.split_cost import software_cost
    from nearfar.report import text

    machine = _machine(contention, host)
    pairs = _pairs(near_threads, far_threads, threads)
    array = splitting.Array(rows, cols, element_bytes)
    if calibrate and software_ns is not None:
        raise BadInputError(
            "--calibrate and --software-ns both give the software cost", "give one of them"
        )
    measured = splitting.read_calibration(calibrate, element_bytes) if calibrate else []
    known = splitting.calibrate(machine, measured) if measured else None
    if software_ns is not None:
        if not isfinite(software_ns):
            raise BadInputError("--software-ns is no finite number", "give nanoseconds")
        known = software_cost(software_ns * 1e-9)
    question = splitting.Question(array, version.value, pairs, far_rows, model.value)
    result = splitting.predict(machine, question, known)
    if measured:
        result.warnings = splitting.inconsistencies(machine, measured)
    show("split", result, text.split(result), json)


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
                "--threads searches the split that --near-threads and --far-threads name",
                "give either --threads, or both of the others",
            )
        return splits_of(threads)
    if near_threads is None or far_threads is None:
        raise BadInputError(
            "it is open how many threads run",
            "give --near-threads and --far-threads, or --threads to search the best split",
        )
    return [(near_threads, far_threads)]
