"""``nearfar predict structure``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges

if TYPE_CHECKING:
    from nearfar.measure.session import Session
    from nearfar.model.structure_results import StructurePrediction
    from nearfar.records.choices import SetName
    from nearfar.records.profile import Host


class Structure(StrEnum):
    """nearfar's structures in a pool, and those that use libpmemobj's transactions."""

    LIST = "list"
    HASH = "hash"
    SKIP_LIST = "skip_list"
    LIST_TX = "list_tx"
    SKIP_LIST_TX = "skip_list_tx"
    MAP_ATOMIC = "map_atomic"
    MAP_TX = "map_tx"
    MAP_RP = "map_rp"


def structure(
    structure_: Annotated[
        Structure,
        typer.Option("--structure", help="nearfar's; or on libpmemobj: *_tx, map_atomic, map_rp."),
    ],
    far: Annotated[
        str, typer.Option("--far", metavar="PROFILE", help="Device profile, such as optane-100.")
    ],
    size_entries: Annotated[
        int,
        typer.Option(
            "--size-entries",
            metavar="N",
            min=1,
            max=ranges.MOST_COUNT,
            help="Entries of the set (1024).",
        ),
    ] = 1024,
    update: Annotated[
        int, typer.Option("--update", metavar="PERCENT", min=0, max=100, help="Updates in percent.")
    ] = 50,
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="Host, such as xeon-5317, or this (measured)."),
    ] = "this",
    cpus: flags.Cpus = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Predict the time of an operation on an integer set in a given memory, and its slowdown.

    Software time is measured in cache on this machine. Misses come from replaying the structure's
    own accesses through a model of the host's caches, which also counts fences and lines. The
    host's file and the device's profile give the cost of each. Slowdowns are relative to the
    volatile counterpart in near memory, and to the same code there: papers rarely say which of the
    two they report. The queue is not supported, because no benchmark times it.

    Examples:

        nearfar predict structure --structure hash --far optane-100

        nearfar predict structure --structure map_tx --far ssd-s4600 --host xeon-5317 --json -
    """
    from nearfar.machine.topology import this_machine
    from nearfar.measure import pools
    from nearfar.report import terminal
    from nearfar.report.printing import show
    from nearfar.workflows.calibrating import open_session
    from nearfar.workflows.plans import chosen_cpus

    pools.require_pools()
    cpu = chosen_cpus(this_machine(), cpus)[-1]
    with open_session(quiet) as session:
        result = _predict(session, structure_.value, size_entries, update, far, host, cpu)
    show("predict structure", result, terminal.structure(result), json)


def _predict(
    session: Session, name: SetName, entries: int, update: int, far: str, host: str, cpu: int
) -> StructurePrediction:
    from nearfar.model import slowdowns, structure_results
    from nearfar.model.devices import far_memory, is_disk, near_memory
    from nearfar.model.host_costs import costs_of
    from nearfar.model.structure_cases import SETS, Watching, sets
    from nearfar.profiles import load_profile
    from nearfar.workflows import calibrating

    device = load_profile(far)
    is_disk(device)  # rejects a device without a latency before anything is measured
    sheet = _host(session, host, cpu)
    costs = costs_of(sheet)
    near = near_memory(sheet, costs)
    memory = far_memory(device, near)
    work, twin = sets(name, entries, update)
    timed = calibrating.software(session, (work, twin), sheet, cpu)
    watching = Watching(costs, cpu)
    return structure_results.predict(
        structure_results.Case(
            name,
            entries,
            update,
            watching.shape(work.work),
            timed[work],
            watching.shape(twin.work),
            timed[twin],
        ),
        costs,
        near,
        memory,
        slowdowns.slowdown(SETS[name][0], device.name, sheet.name),
    )


def _host(session: Session, host: str, cpu: int) -> Host:
    from nearfar.profiles import THIS, load_host
    from nearfar.workflows.calibrating import measured_host

    return measured_host(session, cpu) if host == THIS else load_host(host)


VERBS = (structure,)
