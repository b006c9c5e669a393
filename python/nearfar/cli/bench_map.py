"""``nearfar bench map``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import options


class Operation(StrEnum):
    """What is measured."""

    INSERT = "insert"
    GET = "get"
    REMOVE = "remove"


class Type(StrEnum):
    """Ours, its twin in DRAM, and the three after PMDK."""

    MAP = "map"
    DRAM = "dram"
    ATOMIC = "map_atomic"
    TX = "map_tx"
    RP = "map_rp"


class Other(StrEnum):
    """What to compare with."""

    PMDK = "pmdk"


class Counters(StrEnum):
    """Where counters of the measured region come from."""

    AUTO = "auto"
    PERF = "perf"
    SIMULATED = "simulated"
    OFF = "off"


@options.grouped
def map_(
    op: Annotated[Operation, typer.Option("--op", help="What is done, once a key.")] = (
        Operation.INSERT
    ),
    type_: Annotated[
        Type, typer.Option("--type", help="map is nearfar's, dram its twin; others as PMDK's.")
    ] = Type.MAP,
    operations: Annotated[
        list[int] | None,
        typer.Option("-n", metavar="N", min=1, help="Operations (1,000,000); repeat for several."),
    ] = None,
    value_bytes: Annotated[
        list[int] | None,
        typer.Option("-d", metavar="BYTES", min=1, help="Of a value (8); repeat for several."),
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option(
            "--tier", metavar="TIER", help="shm:, numa:N, fsdax:DIR, devdax:DEVICE, file:DIR."
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option("--threads", metavar="T", min=1, help="Threads that share the keys.")
    ] = 1,
    alloc: Annotated[
        bool,
        typer.Option(
            "--alloc", help="As pmembench --alloc: values are objects, neither written nor read."
        ),
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave a pool behind.")] = False,
    compare: Annotated[
        Other | None, typer.Option("--compare", help="libpmemobj's own primitives beside it.")
    ] = None,
    counters: Annotated[
        Counters,
        typer.Option(
            "--counters", help="Of the operations alone: the processor's, or a model of its caches."
        ),
    ] = Counters.OFF,
    *,
    shared: options.Measuring,
) -> None:
    """Insertions, look-ups or removals in a persistent hash map, as pmembench times them.

    Keys are pmembench's. A map is filled before look-ups and removals, which is timed apart. Each
    epoch makes fresh pools and runs the keys as a whole, then timed one by one. Fences and lines
    of an operation are counted, those of libpmemobj too. On shm: and numa: DRAM stands in for
    persistent memory, with every flush and fence forced: such figures are emulated. --type dram on
    numa:N lies on that node; --tier dram holds the volatile twins of map_atomic, map_tx and map_rp.
    devdax: takes the whole device, and refuses one that holds a pool.

    --counters adds hardware and kernel counters of the operations, read at the edges of the loop;
    what a machine does not count, as most virtual ones, is simulated in a model of its caches.
    Four sizes or more give counters.csv, for `nearfar fit counters`, beside the record.

    Examples:

        nearfar bench map --op insert --type map

        nearfar bench map --op get --type map_rp -n 100000 -n 1000000 -d 8 -d 128

        nearfar bench map --op insert --compare pmdk --json -

        nearfar bench map --op get -n 10000 -n 50000 -n 200000 -n 1000000 --counters auto

        nearfar bench map --op insert --tier shm:/dev/shm/a.pool --keep
    """
    from nearfar.cli import counting
    from nearfar.cli.plans import map_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure import maps as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import text

    place = tier or ("dram" if type_ is Type.DRAM else "shm:")
    sizes = (operations or [1_000_000], value_bytes or [8])
    arguments = {
        "op": op.value, "type": type_.value, "operations": sizes[0], "value_bytes": sizes[1],
        "tier": place, "threads": threads, "alloc": alloc, "compare": bool(compare),
        "counters": counters.value,
    }  # fmt: skip
    with recorded("bench map", arguments, shared.kept) as recording:
        plan = map_plan(
            recording.machine, (type_.value, op.value), sizes, place, threads, cpus=shared.cpus,
            seed=shared.seed, alloc=alloc, compare=compare is not None, keep=keep,
        )  # fmt: skip
        plan = counting.with_events(plan, counters.value)
        effort = Effort(shared.budget_s(30.0), shared.runs, shared.warmup)
        result, skipped = measurement.measure(recording.session, plan, effort)
        counting.fill(result, counters.value, recording.machine)
        if keep:
            result.pool = measurement.keep(plan)
        recording.keep("map", result, skipped)
    counting.write_tables(result, recording.directory.path)
    recording.show(text.map_run(result), recording.document(result), shared.json)
