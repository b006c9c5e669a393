"""``nearfar predict contention``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags

Model = Annotated[Path, typer.Argument(metavar="M.json", help="From `nearfar fit contention`.")]
Mixed = Annotated[
    bool,
    typer.Option(
        "--mixed", help="Far threads copy between both tiers (default: within the far tier)."
    ),
]


def contention(
    model: Model,
    near_threads: flags.NearThreads,
    far_threads: flags.FarThreads,
    mixed: Mixed = False,
    json: flags.Json = None,
) -> None:
    """Predict the bandwidth of two sides that copy concurrently, from a fitted model.

    Examples:

        nearfar predict contention contention.json --near-threads 11 --far-threads 5 --json -
    """
    from nearfar import api
    from nearfar.report.printing import show
    from nearfar.report.terminal import predictions

    result = api.predict_contention(model, near_threads, far_threads, mixed=mixed)
    show("predict contention", result, predictions.contention(result), json)


VERBS = (contention,)
