"""``nearfar predict map-get``, ``map-insert`` and ``map-remove``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.model.map_work import MapPrediction
    from nearfar.records.choices import MapOperation
    from nearfar.records.profile import Host


class Model(StrEnum):
    """nearfar's model, or one of the two models of the Nicosia thesis."""

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
    int,
    typer.Option(
        "--ops",
        metavar="N",
        min=1,
        max=ranges.MOST_COUNT,
        help="Operations, which is also the number of entries.",
    ),
]
ValueBytes = Annotated[
    int, typer.Option("--value-bytes", metavar="B", min=1, max=ranges.MOST_ELEMENT_BYTES)
]
Chosen = Annotated[
    Model, typer.Option("--model", help="replay: nearfar's; counters, structure: as published.")
]


@dataclass(frozen=True)
class Question:
    """The flags of a prediction."""

    far: Far
    host: HostName
    ops: Operations
    value_bytes: ValueBytes = 1
    model: Chosen = Model.REPLAY
    cpus: flags.Cpus = None
    json: flags.Json = None
    quiet: flags.Quiet = False


@flags.grouped
def map_get(*, question: Question) -> None:
    """Predict the time of gets on PMDK's atomic hash map in far memory.

    All keys are got once, in random order, from a map with one entry per key. The model replays the
    map's accesses through the host's cache. Only the host ``this`` is measured: its loads and page
    walks, on the last CPU of --cpus.

    Examples:

        nearfar predict map-get --far ucy-optane --host xeon-5218r --ops 1000000

        nearfar predict map-get --far ucy-optane --host xeon-5218r --ops 50000 --model structure
    """
    _show("get", question)


@flags.grouped
def map_insert(*, question: Question) -> None:
    """Predict the time of insertions into PMDK's atomic hash map in far memory, starting empty.

    A lower bound: the printed limits give the reasons.

    Example: `nearfar predict map-insert --far ucy-optane --host xeon-5218r --ops 1000000`
    """
    _show("insert", question)


@flags.grouped
def map_remove(*, question: Question) -> None:
    """Predict the time of removals from PMDK's atomic hash map in far memory, until it is empty.

    A lower bound: the printed limits give the reasons.

    Example: `nearfar predict map-remove --far ucy-optane --host xeon-5218r --ops 1000000`
    """
    _show("remove", question)


def _show(operation: MapOperation, question: Question) -> None:
    from nearfar.report import terminal
    from nearfar.report.printing import show

    result = _predict(operation, question)
    show(f"predict map-{operation}", result, terminal.map_work(result), question.json)


def _predict(operation: MapOperation, question: Question) -> MapPrediction:
    from nearfar.model import counters, replay, structure
    from nearfar.model.map_work import MapWork
    from nearfar.profiles import load_host, load_profile

    model = question.model
    if operation != "get" and model is not Model.REPLAY:
        raise BadInputError(
            f"the model {model} is published for gets only", "leave --model out, or use replay"
        )
    work = MapWork(operation, question.ops, question.value_bytes)
    device = load_profile(question.far)
    if model is Model.COUNTERS:
        return counters.predict(work, device, load_host(question.host))
    if model is Model.STRUCTURE:
        load_host(question.host)  # reject unknown hosts, although this model does not use one
        return structure.predict(work, device)
    return replay.predict(work, device, _host(question))


def _host(question: Question) -> Host:
    """Return a host with its latencies: from its file, or measured if it is this machine."""
    from nearfar.machine.topology import this_machine
    from nearfar.profiles import THIS, load_host
    from nearfar.workflows.calibrating import measured_host, open_session
    from nearfar.workflows.plans import chosen_cpus

    if question.host != THIS:
        if question.cpus is not None:
            raise BadInputError(
                f"--cpus has no effect on --host {question.host}", "remove it, or use --host this"
            )
        return load_host(question.host)
    cpu = chosen_cpus(this_machine(), question.cpus)[-1]
    with open_session(question.quiet) as session:
        return measured_host(session, cpu)


VERBS = (map_get, map_insert, map_remove)
