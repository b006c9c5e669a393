"""``nearfar probe``."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.errors import BadInputError

#: Flags allowed with ``--from``. All other flags configure a measurement; ``--from`` makes none.
_OF_CURVES = frozenset({"from_", "json", "csv", "quiet"})
#: Flags not allowed with ``--matrix``, which uses the same settings for all memories.
_OF_ONE_TIER = frozenset({"tier", "region", "threads", "size", "quick"})

Region = Annotated[str | None, flags.size("--region", "Largest region of the latency curve.")]
From = Annotated[
    Path | None, flags.text("--from", "CSV", "Published curve: find its knees, measure nothing.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Measure coarsely, in under ten seconds.")]
Matrix = Annotated[
    bool, typer.Option("--matrix", help="Measure from the CPUs of each node to each memory node.")
]


@flags.expand_dataclasses
def probe(
    context: typer.Context,
    tier: flags.OneTier = "dram",
    region: Region = None,
    from_: From = None,
    threads: flags.Threads = None,
    size: flags.Size = None,
    quick: Quick = False,
    matrix: Matrix = False,
    *,
    shared: flags.Measuring,
) -> None:
    """Probe one tier in depth, and write its device profile.

    The sections:

    - latency: dependent loads in random order over regions from 4 KiB to beyond the last cache, on
      4 KiB pages and on huge pages; the difference is the cost of page walks
    - bandwidth: reads, writes, non-temporal stores and copies, by number of threads
    - parallelism: the number of misses that a thread overlaps, from independent pointer chases
    - blocks: latency by block size
    - access: bandwidth of independent accesses by mix of reads and writes, order, size and stride
    - persistence: the cost of a fence and of a flushed line, by instruction
    - loaded: latency while other threads use bandwidth
    - tails: percentiles of the latency of single loads

    The record includes profile.toml, which every verb accepts as a device profile.

    --from finds the knees of a published latency curve, and measures nothing. The CSV file has the
    columns region_bytes and latency_ns. With a column block_bytes, the knees are those of the
    smallest block. With a column ntwrite_ns as well (the time of a non-temporal store of 64 B), the
    access unit of the medium is derived from the store times of different block sizes.

    --matrix measures latency and bandwidth from the CPUs of each node to the memory of each node.

    Examples:

        nearfar probe

        nearfar probe --matrix

        nearfar probe --tier shm: --region 1GiB

        nearfar probe --quick --json -

        nearfar probe --from curve.csv
    """
    from nearfar import api
    from nearfar.report.terminal import record as record_tables

    if from_:
        _show_knees(context, from_, shared.json)
        return
    output = replace(shared.output, says_verdict=True)
    if matrix:
        _refuse_flags(context, "--matrix", _OF_ONE_TIER & set(flags.given(context)))
        table = api.probe_matrix(shared.options)
        show_measured(table, record_tables.record(table.run), output)
        return
    done = api.probe(
        tier, shared.options, quick=quick, region=region, threads=threads or (), size=size
    )
    show_measured(done, record_tables.record(done.run), output)


def _show_knees(context: typer.Context, path: Path, json: str | None) -> None:
    """Print the knees of the curve in a CSV file; raise BadInputError for flags without effect."""
    from nearfar.measure.curve_file import examine
    from nearfar.report.console import show
    from nearfar.report.terminal import results

    _refuse_flags(context, "--from, which measures nothing", set(flags.given(context)) - _OF_CURVES)
    result = examine(path)
    document = result.model_dump_json(indent=1, exclude_none=True)
    show(results.published_curve(result), document, json)


def _refuse_flags(context: typer.Context, other: str, without_effect: AbstractSet[str]) -> None:
    """Raise BadInputError for the first given flag that has no effect together with ``other``."""
    for name in flags.given(context):
        if name in without_effect:
            raise BadInputError(
                f"--{name} does not go with {other}",
                f"leave out --{name}, or {other.partition(',')[0]}",  # the flag without the reason
            )
