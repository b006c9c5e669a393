"""``nearfar bench map``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.cli.output import show_measured
from nearfar.records.choices import CounterMode, MapOperation, MapReference, MapType

Op = Annotated[MapOperation, typer.Option("--op", help="Operation, once per key.")]
Type = Annotated[
    MapType,
    typer.Option("--type", help="map: nearfar's; dram: its volatile counterpart; or PMDK's."),
]
Operations = Annotated[
    list[int] | None,
    flags.count("-n", "--operations", help="Operations (1,000,000); repeat for several."),
]
ValueBytes = Annotated[
    list[int] | None,
    flags.count(
        "-d",
        metavar="BYTES",
        most=ranges.MAX_ELEMENT_BYTES,
        help="Bytes of a value (8); repeat for several.",
    ),
]
Tier = Annotated[
    str | None, flags.text("--tier", "TIER", "shm:, numa:N, fsdax:DIR, devdax:DEVICE, file:DIR.")
]
Threads = Annotated[
    int,
    flags.count(
        "--threads", metavar="T", most=ranges.MAX_THREADS, help="Threads, which divide the keys."
    ),
]
Alloc = Annotated[
    bool,
    typer.Option(
        "--alloc", help="As pmembench --alloc: values are objects, neither written nor read."
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the pool.")]
Compare = Annotated[
    MapReference | None, typer.Option("--compare", help="Also measure libpmemobj's primitives.")
]
Counters = Annotated[
    CounterMode,
    typer.Option(
        "--counters",
        help="Counters of the operations alone: hardware, or a model of the caches.",
    ),
]


@flags.expand_dataclasses
def map_(
    op: Op = "insert",
    type_: Type = "map",
    operations: Operations = None,
    value_bytes: ValueBytes = None,
    tier: Tier = None,
    threads: Threads = 1,
    alloc: Alloc = False,
    keep: Keep = False,
    compare: Compare = None,
    counters: Counters = "off",
    *,
    shared: flags.Measuring,
) -> None:
    """Measure insertions, look-ups or removals in a persistent hash map, as pmembench does.

    Keys are pmembench's. Before look-ups and removals the map is filled, which is timed separately.
    Each epoch creates fresh pools and runs all keys in one loop, then times them individually. The
    fences and flushed lines of an operation are counted, including those of libpmemobj. With a tier
    shm: or numa:N, DRAM emulates persistent memory, with every flush and fence forced: such figures
    are emulated. --type dram with numa:N is on that node; --tier dram holds the volatile
    counterparts of map_atomic, map_tx and map_rp. devdax:DEVICE uses the whole device, and is
    refused if it holds a pool.

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
    from nearfar.report.terminal import persistent_structures
    from nearfar.workflows.bench import map_ as workflow

    work = workflow.Work(
        op,
        type_,
        operations or [1_000_000],
        value_bytes or [8],
        tier,
        threads,
        alloc,
        keep,
        compare is not None,
    )
    done = workflow.measure(work, shared.options, counters=counters)
    show_measured(done, persistent_structures.map_run(done.result), shared.output)
