"""``nearfar sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.cli.output import Output

if TYPE_CHECKING:
    from nearfar.workflows import sweeping
    from nearfar.workflows.sweeping import Swept

Suite = Annotated[str, typer.Argument(metavar="SUITE", help="A shipped suite, or a .toml file.")]
Full = Annotated[bool, typer.Option("--full", help="Run the long form of the suite, as published.")]
Jobs = Annotated[
    int | None,
    flags.count(
        "--jobs",
        most=ranges.MAX_THREADS,
        help="Concurrent computations (default: one per CPU).",
    ),
]
Scheduler = Annotated[
    str | None, flags.text("--scheduler", "ADDRESS", "dask.distributed: tcp://HOST:PORT.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Sweep directory (nearfar-runs/sweep-SUITE).",
        callback=flags.record_place,
    ),
]


def sweep(
    context: typer.Context,
    suite: Suite,
    full: Full = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    out: Out = None,
    json: flags.Json = None,
    strict: flags.Strict = False,
    dry_run: flags.DryRun = False,
    quiet: flags.Quiet = False,
) -> int:
    """Run verbs over grids of their flags: devices, budgets, policies, sizes, models.

    Shipped suites, in a short form that runs on any machine: nicosia, oslo, seoul, daxbench64 and
    wscad, after the published experiments. A custom suite names a verb, flags without their dashes,
    and lists of values:

        verb = "sim"
        flags = { pattern = "random", requests = 200000 }
        grid = { far = ["pcm-lee", "cxl-ddr5"], page-policy = ["open", "closed"] }

    Verbs that measure run one at a time on their machine; verbs that compute run in parallel. Each
    cell is saved when it ends and identified by its flags, files and version, so that an
    interrupted sweep resumes. All figures are written to results.csv, one row each, and to
    results.parquet if polars is installed. Exits with 3 if a cell failed because something is
    missing, and with 2 if its flags are wrong; the other cells are kept.

    Examples:

        nearfar sweep oslo

        nearfar sweep devices.toml --dry-run

        nearfar sweep seoul --full --scheduler tcp://10.0.0.1:8786
    """
    from functools import partial

    from nearfar.cli.verbs import cell_arguments
    from nearfar.sweep.suite import load_suite
    from nearfar.workflows import sweeping

    wanted = sweeping.SweepRequest(
        load_suite(suite),
        full,
        jobs,
        scheduler,
        out,
        partial(cell_arguments, context.find_root().command),
        flags.progress_of(quiet),
    )
    if dry_run:
        _show_plan(wanted, json)
        return 0
    return _show(sweeping.sweep(wanted), Output(json, strict, quiet))


def _show_plan(wanted: sweeping.SweepRequest, json: str | None) -> None:
    from nearfar.report.console import show_dry_run
    from nearfar.workflows import sweeping

    orders = sweeping.work_orders(wanted)
    cells = [{"id": o.id, "verb": o.verb, "command": o.command} for o in orders]
    show_dry_run("sweep", {"cells": cells}, [order.command for order in orders], json)


def _show(done: Swept, output: Output) -> int:
    """Print the result, and return its exit code. Raises NoisyError under --strict."""
    from nearfar.errors import ExitCode, NoisyError
    from nearfar.report.console import note, show
    from nearfar.report.terminal import sweep as sweep_tables

    if done.found_again and not output.quiet:
        note(f"found again: {done.found_again} of {done.result.planned} cells")
    document = done.run.model_dump_json(indent=1, exclude_none=True)
    show(sweep_tables.sweep(done.result), document, output.json, done.csv)
    if not output.quiet:
        note(f"record: {done.folder}")
    code = done.exit_code()
    if done.noisy and output.strict and code not in (ExitCode.BAD_INPUT, ExitCode.MACHINE):
        raise NoisyError(
            f"{done.noisy} of {len(done.result.cells)} cells were too noisy",
            "stop what else runs (see `nearfar doctor`), and sweep into another --out",
        )
    return code
