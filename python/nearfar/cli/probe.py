"""``nearfar probe``."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.errors import BadInputError

#: Flags that go with ``--from``. All others configure a measurement, and ``--from`` runs none.
_OF_CURVES = frozenset({"from_", "json", "csv", "quiet"})
#: Flags that do not go with ``--matrix``: it measures all memories in one way.
_OF_ONE_TIER = frozenset({"tier", "region", "threads", "size", "quick"})

Region = Annotated[str | None, flags.size("--region", "Largest region of the latency curve.")]
From = Annotated[
    Path | None, flags.text("--from", "CSV", "Published curve: find its knees, measure nothing.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Measure coarsely, in under ten seconds.")]
Matrix = Annotated[
    bool, typer.Option("--matrix", help="Measure from the CPUs of each node to each memory node.")
]


@flags.grouped
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

    Latency: dependent loads in random order over regions from 4 KiB to beyond the last cache, on 4
    KiB and on huge pages, which separates the cost of page walks; by block size; by percentile;
    under load. Memory-level parallelism: independent pointer chases on one thread. Bandwidth:
    reads, writes, non-temporal stores and copies by threads; mixes, orders, sizes and strides of
    independent accesses. Persistence cost: a fence and a flushed line, by instruction.

    The record includes profile.toml, which every verb accepts as a device profile.

    --from measures nothing: it finds the knees of a CSV file with columns region_bytes and
    latency_ns; with a column block_bytes, those of the smallest block. From a column ntwrite_ns (64
    B non-temporal stores) over several blocks it also finds the access unit of the medium.

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
    if matrix:
        _refuse_flags(context, "--matrix", _OF_ONE_TIER & set(flags.given(context)))
        table = api.probe_matrix(shared.options)
        show_measured(table, record_tables.record(table.run), shared.output)
        return
    done = api.probe(
        tier, shared.options, quick=quick, region=region, threads=threads or (), size=size
    )
    show_measured(done, record_tables.record(done.run), shared.output)


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
    """Raise BadInputError for the first flag that has no effect next to another one."""
    for name in flags.given(context):
        if name in without_effect:
            raise BadInputError(
                f"--{name} does not go with {other}",
                f"leave out --{name}, or {other.partition(',')[0]}",
            )
