"""``nearfar place``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import Output, show_measured
from nearfar.units import parse_seconds, parse_size

Pid = Annotated[
    int, typer.Option("--pid", metavar="PID", help="The running program.", min=1, max=1 << 22)
]
Plan = Annotated[Path | None, flags.text("--plan", "PLAN", "Plan file with map= or globals=.")]
Tiers = Annotated[
    list[str] | None,
    flags.text("--tier", "NAME=TIER", "Name and tier, such as far=numa:1; repeat for several."),
]
Once = Annotated[bool, typer.Option("--once", help="Move pages once, and end.")]
Revert = Annotated[
    bool, typer.Option("--revert", help="Move pages back to where they were before.")
]
Record = Annotated[
    Path | None,
    typer.Argument(
        metavar="RUN", show_default=False, help="With --revert: record (default: the newest)."
    ),
]


def _a_rate(text: str | None) -> str | None:
    if text is not None and text != "unlimited":
        parse_size(text.removesuffix("/s"))
    return text


Rate = Annotated[
    str,
    typer.Option(
        "--rate",
        metavar="BYTES/s|unlimited",
        help="Limit of moving, per second.",
        callback=_a_rate,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time", metavar="TIME", help="Stay attached for this time.", callback=flags.a_time
    ),
]
Shared = Annotated[
    bool,
    typer.Option(
        "--shared", help="Also move pages that other processes map; requires CAP_SYS_NICE."
    ),
]
Details = Annotated[bool, typer.Option("--details", help="Print a table of rules and regions.")]


def place(
    pid: Pid,
    run: Record = None,
    plan: Plan = None,
    tier: Tiers = None,
    once: Once = False,
    revert: Revert = False,
    rate: Rate = "256MiB/s",
    time: Time = None,
    shared: Shared = False,
    details: Details = False,
    out: flags.Out = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> int:
    """Move the pages of a running program to the memory tiers that a plan specifies.

    The program is not stopped and not modified: the kernel moves its pages (move_pages), at no more
    than --rate. Rules with map= or globals= are applied, unless they name a call site; all other
    rules require `nearfar run --plan`. Pages that no rule names stay where they are. Tiers are NUMA
    nodes: numa:1, or dram for the nodes with CPUs.

    The verb stays attached and moves new pages, until the program ends, --time is over, or Ctrl-C;
    then it prints what was moved, and what the kernel refused to move and why. --once moves the
    pages that are there, and ends.
    Children of the program are not followed. If something moves pages back, the result reports how
    many, and the setting of the kernel that does it.

    --revert moves pages back to the nodes where they were before the run RUN, or before the newest
    run on this process below nearfar-runs.

    Examples:

        nearfar place --pid $(pidof redis-server) --plan redis.plan --tier far=numa:1

        nearfar place --pid 4711 --plan service.plan --once --rate 1GiB/s --json result.json

        nearfar place --pid 4711 --revert
    """
    from nearfar import api
    from nearfar.errors import BadInputError, ExitCode
    from nearfar.report.terminal import page_placement

    if run is not None and not revert:
        raise BadInputError(
            f"unexpected argument {run}: a record is for --revert", "nearfar place --help"
        )
    done = api.place_process(
        pid,
        flags.options(out=out, quiet=quiet),
        plan=plan,
        tiers=tier or (),
        once=once,
        revert=revert,
        run=run,
        rate_bytes_per_s=None if rate == "unlimited" else parse_size(rate.removesuffix("/s")),
        time_s=parse_seconds(time) if time else None,
        shared=shared,
    )
    text = page_placement.page_placement(done.result, details=details)
    show_measured(done, text, Output(json, False, quiet))
    stopped = done.result.ended == "interrupted" and not done.result.complete
    return ExitCode.INTERRUPTED if stopped else ExitCode.OK
