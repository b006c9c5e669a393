"""``nearfar predict structure``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options

if TYPE_CHECKING:
    from nearfar.measure.session import Session
    from nearfar.model.structure_results import StructureName, StructurePrediction
    from nearfar.records.profile import Host


class Structure(StrEnum):
    """Ours in a pool, and those on libpmemobj's transactions."""

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
        typer.Option("--structure", help="Ours; or by libpmemobj: *_tx, map_atomic, map_rp."),
    ],
    far: Annotated[
        str, typer.Option("--far", metavar="PROFILE", help="Device profile, such as optane-100.")
    ],
    size_entries: Annotated[
        int, typer.Option("--size-entries", metavar="N", min=1, help="Entries of the set (1024).")
    ] = 1024,
    update: Annotated[
        int, typer.Option("--update", metavar="PERCENT", min=0, max=100, help="Of operations.")
    ] = 50,
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="Host, such as xeon-5317, or this (measured)."),
    ] = "this",
    cpus: options.Cpus = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """Time of an operation on a set of integers in memory you may not own, and its slowdown.

    Software is timed in cache on this machine. Misses are those of the structure's own accesses,
    run through the host's caches; fences and lines are counted meanwhile. The host's file and the
    device's profile price them. Slowdowns are against the volatile twin in near memory, and
    against the same code there: papers seldom tell which they mean. The queue is not among the
    structures, for no benchmark times it.

    Examples:

        nearfar predict structure --structure hash --far optane-100

        nearfar predict structure --structure map_tx --far ssd-s4600 --host xeon-5317 --json -
    """
    from nearfar.cli.calibrating import open_session
    from nearfar.cli.plans import chosen_cpus
    from nearfar.cli.predictions import show
    from nearfar.machine.topology import this_machine
    from nearfar.measure import pools
    from nearfar.report import text

    pools.require_pools()
    cpu = chosen_cpus(this_machine(), cpus)[-1]
    with open_session(quiet) as session:
        result = _predict(session, structure_.value, size_entries, update, far, host, cpu)
    show("predict structure", result, text.structure(result), json)


def _predict(
    session: Session, name: StructureName, entries: int, update: int, far: str, host: str, cpu: int
) -> StructurePrediction:
    from nearfar.cli import calibrating
    from nearfar.model import slowdowns, structure_results
    from nearfar.model.devices import far_memory, is_disk, near_memory
    from nearfar.model.host_costs import costs_of
    from nearfar.model.structure_cases import SETS, Watching, sets
    from nearfar.profiles import load_profile

    device = load_profile(far)
    is_disk(device)  # one without a latency is refused before anything is measured
    sheet = _host(session, host, cpu)
    costs = costs_of(sheet)
    near = near_memory(sheet, costs)
    memory = far_memory(device, near)
    work, twin = sets(name, entries, update)
    timed = calibrating.software(session, (work, twin), sheet, cpu)
    watching = Watching(costs, cpu)
    return structure_results.predict(
        structure_results.Case(
            name, entries, update, watching.shape(work.work), timed[work],
            watching.shape(twin.work), timed[twin],
        ),
        costs, near, memory, slowdowns.slowdown(SETS[name][0], device.name, sheet.name),
    )  # fmt: skip


def _host(session: Session, host: str, cpu: int) -> Host:
    from nearfar.cli.calibrating import measured_host
    from nearfar.profiles import THIS, load_host

    return measured_host(session, cpu) if host == THIS else load_host(host)


VERBS = (structure,)
