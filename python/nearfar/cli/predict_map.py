"""``nearfar predict map-get``, ``map-insert`` and ``map-remove``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.model.map_work import Operation


class Model(StrEnum):
    """Ours, or one of the two of the Nicosia thesis."""

    REPLAY = "replay"
    COUNTERS = "counters"
    STRUCTURE = "structure"


Far = Annotated[
    str, typer.Option("--far", metavar="PROFILE", help="Device profile, such as ucy-optane.")
]
Host = Annotated[
    str, typer.Option("--host", metavar="HOST", help="Host, such as xeon-5218r, or a file.")
]
Operations = Annotated[
    int, typer.Option("--ops", metavar="N", min=1, help="Operations, and entries of the map.")
]
ValueBytes = Annotated[int, typer.Option("--value-bytes", metavar="B", min=1)]
Chosen = Annotated[
    Model, typer.Option("--model", help="replay is ours; the others are kept as published.")
]


def map_get(
    far: Far,
    host: Host,
    ops: Operations,
    value_bytes: ValueBytes = 1,
    model: Chosen = Model.REPLAY,
    json: options.Json = None,
) -> None:
    """Time of gets on PMDK's atomic hash map in far memory.

    All keys are got once, in a random order, from a map of as many entries. The replay runs the
    map itself through the host's cache; nothing is measured here.

    Examples:

        nearfar predict map-get --far ucy-optane --host xeon-5218r --ops 1000000

        nearfar predict map-get --far ucy-optane --host xeon-5218r --ops 50000 --model structure
    """
    _predict("get", far, host, ops, value_bytes, model, json)


def map_insert(
    far: Far,
    host: Host,
    ops: Operations,
    value_bytes: ValueBytes = 1,
    model: Chosen = Model.REPLAY,
    json: options.Json = None,
) -> None:
    """Time of insertions into PMDK's atomic hash map in far memory, from an empty map on.

    A lower bound: see the limits that are printed with it.

    Example: `nearfar predict map-insert --far ucy-optane --host xeon-5218r --ops 1000000`
    """
    _predict("insert", far, host, ops, value_bytes, model, json)


def map_remove(
    far: Far,
    host: Host,
    ops: Operations,
    value_bytes: ValueBytes = 1,
    model: Chosen = Model.REPLAY,
    json: options.Json = None,
) -> None:
    """Time of removals from PMDK's atomic hash map in far memory, to the last entry.

    A lower bound: see the limits that are printed with it.

    Example: `nearfar predict map-remove --far ucy-optane --host xeon-5218r --ops 1000000`
    """
    _predict("remove", far, host, ops, value_bytes, model, json)


def _predict(
    operation: Operation, far: str, host: str, ops: int, value_bytes: int, model: Model,
    json: str | None,
) -> None:  # fmt: skip
    from nearfar.cli.predictions import show
    from nearfar.model import counters, replay, structure
    from nearfar.model.map_work import MapWork
    from nearfar.profiles import load_host, load_profile
    from nearfar.report import text

    if operation != "get" and model is not Model.REPLAY:
        raise BadInputError(
            f"the model {model} was published for gets alone", "leave --model out, or say replay"
        )
    work = MapWork(operation, ops, value_bytes)
    device, processor = load_profile(far), load_host(host)
    if model is Model.COUNTERS:
        result = counters.predict(work, device, processor)
    elif model is Model.STRUCTURE:
        result = structure.predict(work, device)
    else:
        result = replay.predict(work, device, processor)
    show(f"predict map-{operation}", result, text.map_work(result), json)


VERBS = (map_get, map_insert, map_remove)
