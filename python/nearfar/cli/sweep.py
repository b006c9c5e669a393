"""``nearfar sweep``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import options


def sweep(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A shipped suite, or a .toml file.")
    ],
    full: Annotated[
        bool, typer.Option("--full", help="The long form of the suite, as published.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Computations at once (one a processor)."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Of dask.distributed: tcp://HOST:PORT"),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Of the sweep (nearfar-runs/sweep-SUITE)."),
    ] = None,
    json: options.Json = None,
    strict: options.Strict = False,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> int:
    """Run verbs over grids of their flags: devices, budgets, policies, sizes, models.

    Shipped suites, in a short form that runs on any machine: nicosia, oslo, seoul, daxbench64 and
    wscad, after the published experiments. A suite of your own names a verb, flags without their
    dashes, and lists of values:

        verb = "sim"
        flags = { pattern = "random", n = 200000 }
        grid = { far = ["pcm-lee", "cxl-ddr5"], page-policy = ["open", "closed"] }

    What measures runs alone on its machine; what computes runs side by side. A cell is kept as it
    ends, and found again by its flags, files and version: a sweep that was stopped, or killed, goes
    on where it was. All figures end in results.parquet, a row each. Exits with 3 where a cell
    failed for want of something, 2 where its flags are wrong; the others are kept.

    Examples:

        nearfar sweep oslo

        nearfar sweep devices.toml --dry-run

        nearfar sweep seoul --full --scheduler tcp://10.0.0.1:8786
    """
    from pathlib import Path

    from nearfar.cli import sweeping
    from nearfar.sweep.suite import load_suite

    wanted = sweeping.Wanted(
        load_suite(suite), full, jobs, scheduler, Path(out) if out else None, strict, quiet
    )
    if dry_run:
        for order in sweeping.orders(wanted):
            print(order.command)
        return 0
    return sweeping.run(wanted, json)
