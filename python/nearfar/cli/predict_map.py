"""``nearfar predict map-get``, ``map-insert`` and ``map-remove``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.model.map_work import MapPrediction, Operation
    from nearfar.records.profile import Host


class Model(StrEnum):
    """Ours, or one of the two of the Nicosia thesis."""

    REPLAY = "replay"
    COUNTERS = "counters"
    STRUCTURE = "structure"


Far = Annotated[
    str, typer.Option("--far", metavar="PROFILE", help="Device profile, such as ucy-optane.")
]
HostName = Annotated[
    str,
    typer.Option(
        "--host", metavar="HOST", help="Host, such as xeon-5218r, a file, or this (measured)."
    ),
]
Operations = Annotated[
    int, typer.Option("--ops", metavar="N", min=1, help="Operations, and entries of the map.")
]
ValueBytes = Annotated[int, typer.Option("--value-bytes", metavar="B", min=1)]
Chosen = Annotated[
    Model, typer.Option("--model", help="replay is ours; the others are kept as published.")
]


@dataclass(frozen=True)
class Question:
    """What was asked for."""

    far: Far
    host: HostName
    ops: Operations
    value_bytes: ValueBytes = 1
    model: Chosen = Model.REPLAY
    cpus: options.Cpus = None
    json: options.Json = None
    quiet: options.Quiet = False


@options.grouped
def map_get(*, question: Question) -> None:
    """Time of gets on PMDK's atomic hash map in far memory.

    All keys are got once, in a random order, from a map of as many entries. The replay runs the
    map itself through the host's cache. Nothing is measured but the host ``this``, its loads and
    page walks, on the last of --cpus.

    Examples:

        nearfar predict map-get --far ucy-optane --host xeon-5218r --ops 1000000

        nearfar predict map-get --far ucy-optane --host xeon-5218r --ops 50000 --model structure
    """
    _show("get", question)


@options.grouped
def map_insert(*, question: Question) -> None:
    """Time of insertions into PMDK's atomic hash map in far memory, from an empty map on.

    A lower bound: see the limits that are printed with it.

    Example: `nearfar predict map-insert --far ucy-optane --host xeon-5218r --ops 1000000`
    """
    _show("insert", question)


@options.grouped
def map_remove(*, question: Question) -> None:
    """Time of removals from PMDK's atomic hash map in far memory, to the last entry.

    A lower bound: see the limits that are printed with it.

    Example: `nearfar predict map-remove --far ucy-optane --host xeon-5218r --ops 1000000`
    """
    _show("remove", question)


def _show(operation: Operation, question: Question) -> None:
    from nearfar.cli.predictions import show
    from nearfar.report import text

    result = _predict(operation, question)
    show(f"predict map-{operation}", result, text.map_work(result), question.json)


def _predict(operation: Operation, question: Question) -> MapPrediction:
    from nearfar.model import counters, replay, structure
    from nearfar.model.map_work import MapWork
    from nearfar.profiles import load_host, load_profile

    model = question.model
    if operation != "get" and model is not Model.REPLAY:
        raise BadInputError(
            f"the model {model} was published for gets alone", "leave --model out, or say replay"
        )
    work = MapWork(operation, question.ops, question.value_bytes)
    device = load_profile(question.far)
    if model is Model.COUNTERS:
        return counters.predict(work, device, load_host(question.host))
    if model is Model.STRUCTURE:
        load_host(question.host)  # refused by name, though this model needs no processor
        return structure.predict(work, device)
    return replay.predict(work, device, _host(question))


def _host(question: Question) -> Host:
    """A host with its latencies: out of its file, or measured where it is the one we run on."""
    from nearfar.cli.calibrating import measured_host, open_session
    from nearfar.cli.plans import chosen_cpus
    from nearfar.machine.topology import this_machine
    from nearfar.profiles import THIS, load_host

    if question.host != THIS:
        return load_host(question.host)
    cpu = chosen_cpus(this_machine(), question.cpus)[-1]
    with open_session(question.quiet) as session:
        return measured_host(session, cpu)


VERBS = (map_get, map_insert, map_remove)
