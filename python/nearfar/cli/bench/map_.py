"""``nearfar bench map``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import flags, ranges


class Operation(StrEnum):
    """Operation to measure."""

    INSERT = "insert"
    GET = "get"
    REMOVE = "remove"


class Type(StrEnum):
    """nearfar's map, its volatile counterpart in DRAM, and three maps after PMDK's."""

    MAP = "map"
    DRAM = "dram"
    ATOMIC = "map_atomic"
    TX = "map_tx"
    RP = "map_rp"


class Other(StrEnum):
    """Reference to compare with."""

    PMDK = "pmdk"


class Counters(StrEnum):
    """Source of the counters of the measured region."""

    AUTO = "auto"
    PERF = "perf"
    SIMULATED = "simulated"
    OFF = "off"


@flags.grouped
def map_(
    op: Annotated[Operation, typer.Option("--op", help="Operation, once per key.")] = (
        Operation.INSERT
    ),
    type_: Annotated[
        Type,
        typer.Option("--type", help="map: nearfar's; dram: its volatile counterpart; or PMDK's."),
    ] = Type.MAP,
    operations: Annotated[
        list[int] | None,
        typer.Option(
            "-n",
            metavar="N",
            min=1,
            max=ranges.MOST_COUNT,
            help="Operations (1,000,000); repeat for several.",
        ),
    ] = None,
    value_bytes: Annotated[
        list[int] | None,
        typer.Option(
            "-d",
            metavar="BYTES",
            min=1,
            max=ranges.MOST_ELEMENT_BYTES,
            help="Bytes of a value (8); repeat for several.",
        ),
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option(
            "--tier", metavar="TIER", help="shm:, numa:N, fsdax:DIR, devdax:DEVICE, file:DIR."
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            "--threads",
            metavar="T",
            min=1,
            max=ranges.MOST_THREADS,
            help="Threads, which divide the keys.",
        ),
    ] = 1,
    alloc: Annotated[
        bool,
        typer.Option(
            "--alloc", help="As pmembench --alloc: values are objects, neither written nor read."
        ),
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the pool.")] = False,
    compare: Annotated[
        Other | None, typer.Option("--compare", help="Also measure libpmemobj's primitives.")
    ] = None,
    counters: Annotated[
        Counters,
        typer.Option(
            "--counters",
            help="Counters of the operations alone: hardware, or a model of the caches.",
        ),
    ] = Counters.OFF,
    *,
    shared: flags.Measuring,
) -> None:
    """Measure insertions, look-ups or removals in a persistent hash map, as pmembench does.

    Keys are pmembench's. Before look-ups and removals the map is filled, which is timed separately.
    Each epoch creates fresh pools and runs all keys in one loop, then times them individually. The
    fences and flushed lines of an operation are counted, including those of libpmemobj. On shm: and
    numa: DRAM emulates persistent memory, with every flush and fence forced: such figures are
    emulated. --type dram on numa:N is on that node; --tier dram holds the volatile counterparts of
    map_atomic, map_tx and map_rp. devdax: uses the whole device, and refuses one that holds a pool.

    --counters adds hardware and kernel counters of the operations, read immediately before and
    after the loop. Events that the machine does not count (most virtual machines) are simulated
    with a model of its caches. Four sizes or more also write counters.csv, for `nearfar fit
    counters`, to the record.

    Examples:

        nearfar bench map --op insert --type map

        nearfar bench map --op get --type map_rp -n 100000 -n 1000000 -d 8 -d 128

        nearfar bench map --op insert --compare pmdk --json -

        nearfar bench map --op get -n 10000 -n 50000 -n 200000 -n 1000000 --counters auto

        nearfar bench map --op insert --tier shm:/dev/shm/a.pool --keep
    """
    from nearfar.measure import maps as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows import counting
    from nearfar.workflows.plans import map_plan
    from nearfar.workflows.recording import recorded

    place = tier or ("dram" if type_ is Type.DRAM else "shm:")
    sizes = (operations or [1_000_000], value_bytes or [8])
    arguments = {
        "op": op.value,
        "type": type_.value,
        "operations": sizes[0],
        "value_bytes": sizes[1],
        "tier": place,
        "threads": threads,
        "alloc": alloc,
        "compare": bool(compare),
        "counters": counters.value,
    }
    with recorded("bench map", arguments, shared.kept) as recording:
        plan = map_plan(
            recording.machine,
            (type_.value, op.value),
            sizes,
            place,
            threads,
            cpus=shared.cpus,
            seed=shared.seed,
            alloc=alloc,
            compare=compare is not None,
            keep=keep,
        )
        plan = counting.with_events(plan, counters.value)
        effort = Effort(shared.budget_s(30.0), shared.runs, shared.warmup)
        result, skipped = measurement.measure(recording.session, plan, effort)
        counting.fill(result, counters.value, recording.machine)
        if keep:
            result.pool = measurement.keep(plan)
        recording.keep("map", result, skipped)
    counting.write_tables(result, recording.directory.path)
    recording.show(terminal.map_run(result), recording.document(result), shared.json)
