"""``nearfar predict contention``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import options


def contention(
    model: Annotated[Path, typer.Argument(metavar="M.json", help="From `nearfar fit contention`.")],
    near_threads: options.NearThreads,
    far_threads: options.FarThreads,
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Far threads copy between both memories; the model is of far to far copies.",
        ),
    ] = False,
    json: options.Json = None,
) -> None:
    """Bandwidth of two sides that copy at once, from a fitted model.

    Examples:

        nearfar predict contention contention.json --near-threads 11 --far-threads 5 --json -
    """
    from nearfar.cli.predictions import show
    from nearfar.model import contention as contention_model
    from nearfar.model.contention_file import read_model
    from nearfar.report import text

    result = contention_model.predict(read_model(model), near_threads, far_threads, mixed=mixed)
    show("predict contention", result, text.contention(result), json)


VERBS = (contention,)
