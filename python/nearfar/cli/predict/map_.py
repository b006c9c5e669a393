"""``nearfar predict map-get``, ``map-insert`` and ``map-remove``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.records.choices import MapModel, MapOperation

Far = Annotated[str, flags.text("--far", "PROFILE", "Device profile, such as ucy-optane.")]
HostName = Annotated[
    str, flags.text("--host", "HOST", "Host, such as xeon-5218r, a file, or this (measured).")
]
Operations = Annotated[
    int,
    flags.count("-n", "--operations", help="Operations, which is also the number of entries."),
]
ValueBytes = Annotated[
    int, flags.count("--value-bytes", metavar="B", most=ranges.MAX_ELEMENT_BYTES)
]
Model = Annotated[
    MapModel, typer.Option("--model", help="replay: nearfar's; counters, structure: as published.")
]


@dataclass(frozen=True)
class Question:
    """The flags of a prediction."""

    far: Far
    host: HostName
    operations: Operations
    value_bytes: ValueBytes = 1
    model: Model = "replay"
    remeasure: flags.Remeasure = False
    cpus: flags.Cpus = None
    json: flags.Json = None
    quiet: flags.Quiet = False


@flags.expand_dataclasses
def map_get(*, question: Question) -> None:
    """Predict the time of gets on PMDK's atomic hash map in far memory.

    All keys are got once, in random order, from a map with one entry per key. The model replays the
    map's accesses through the host's cache. Only the host ``this`` is measured: its loads and page
    walks, on the last CPU of --cpus.

    Examples:

        nearfar predict map-get --far ucy-optane --host xeon-5218r -n 1000000

        nearfar predict map-get --far ucy-optane --host xeon-5218r -n 50000 --model structure
    """
    _show("get", question)


@flags.expand_dataclasses
def map_insert(*, question: Question) -> None:
    """Predict the time of insertions into PMDK's atomic hash map in far memory, starting empty.

    A lower bound: the printed limits give the reasons.

    Example: `nearfar predict map-insert --far ucy-optane --host xeon-5218r -n 1000000`
    """
    _show("insert", question)


@flags.expand_dataclasses
def map_remove(*, question: Question) -> None:
    """Predict the time of removals from PMDK's atomic hash map in far memory, until it is empty.

    A lower bound: the printed limits give the reasons.

    Example: `nearfar predict map-remove --far ucy-optane --host xeon-5218r -n 1000000`
    """
    _show("remove", question)


def _show(operation: MapOperation, question: Question) -> None:
    from nearfar import api
    from nearfar.report.printing import show
    from nearfar.report.terminal import predictions

    result = api.predict_map(
        operation,
        question.operations,
        api.Target(question.far, question.host, question.cpus, question.remeasure),
        value_bytes=question.value_bytes,
        model=question.model,
        progress=flags.progress_of(question.quiet),
    )
    show(f"predict map-{operation}", result, predictions.map_work(result), question.json)


VERBS = (map_get, map_insert, map_remove)
