"""``nearfar sweep``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags, ranges


def sweep(
    context: typer.Context,
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A shipped suite, or a .toml file.")
    ],
    full: Annotated[
        bool, typer.Option("--full", help="Run the long form of the suite, as published.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            max=ranges.MOST_THREADS,
            help="Concurrent computations (default: one per CPU).",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="dask.distributed: tcp://HOST:PORT."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Sweep directory (nearfar-runs/sweep-SUITE)."),
    ] = None,
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
        flags = { pattern = "random", n = 200000 }
        grid = { far = ["pcm-lee", "cxl-ddr5"], page-policy = ["open", "closed"] }

    Verbs that measure run one at a time on their machine; verbs that compute run in parallel. Each
    cell is saved when it ends and identified by its flags, files and version, so that an
    interrupted sweep resumes. All figures are written to results.parquet, one row each. Exits with
    3 if a cell failed because something is missing, and with 2 if its flags are wrong; the other
    cells are kept.

    Examples:

        nearfar sweep oslo

        nearfar sweep devices.toml --dry-run

        nearfar sweep seoul --full --scheduler tcp://10.0.0.1:8786
    """
    from functools import partial
    from pathlib import Path

    from nearfar.cli.verbs import order_arguments
    from nearfar.report.console import show_dry_run
    from nearfar.sweep.suite import load_suite
    from nearfar.workflows import sweeping

    wanted = sweeping.Wanted(
        load_suite(suite),
        full,
        jobs,
        scheduler,
        Path(out) if out is not None else None,
        strict,
        quiet,
        partial(order_arguments, context.find_root().command),
    )
    if dry_run:
        orders = sweeping.orders(wanted)
        cells = [{"id": o.id, "verb": o.verb, "command": o.command} for o in orders]
        show_dry_run("sweep", {"cells": cells}, [order.command for order in orders], json)
        return 0
    return sweeping.run(wanted, json)
