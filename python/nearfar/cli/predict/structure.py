"""``nearfar predict structure``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.records.choices import SetName

Structure = Annotated[
    SetName,
    typer.Option(
        "--structure",
        help="nearfar's (hash is a set on Map); or on libpmemobj: *_tx, map_atomic, map_rp.",
    ),
]
Far = Annotated[str, flags.text("--far", "PROFILE", "Device profile, such as optane-100.")]
Host = Annotated[str, flags.text("--host", "HOST", "Host, such as xeon-5317, or this (measured).")]


def structure(
    structure_: Structure,
    far: Far,
    entries: flags.Entries = 1024,
    update: flags.Update = 50,
    host: Host = "this",
    remeasure: flags.Remeasure = False,
    cpus: flags.Cpus = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Predict the time of an operation on an integer set in a given memory, and its slowdown.

    The operation is the mean of a mix of look-ups and updates (--update) of a set of --entries
    numbers; `predict map-get` and its siblings predict one operation of a map of any size.
    Software time is measured in cache on this machine. Misses come from replaying the structure's
    own accesses through a model of the host's caches, which also counts fences and lines. The
    host's file and the device's profile give the cost of each. Slowdowns are relative to the
    volatile counterpart in near memory, and to the same code there: papers rarely say which of the
    two they report. The queue is not supported, because no benchmark times it.

    Examples:

        nearfar predict structure --structure hash --far optane-100

        nearfar predict structure --structure map_tx --far ssd-s4600 --host xeon-5317 --json -
    """
    from nearfar import api
    from nearfar.report.printing import show
    from nearfar.report.terminal import predictions

    result = api.predict_structure(
        structure_,
        api.Target(far, host, cpus, remeasure),
        entries=entries,
        update=update,
        progress=flags.progress_of(quiet),
    )
    show("predict structure", result, predictions.structure(result), json)


VERBS = (structure,)
