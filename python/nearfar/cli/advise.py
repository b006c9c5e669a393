"""``nearfar advise``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import Output, show_measured
from nearfar.units import parse_seconds

Budget = Annotated[
    str | None,
    flags.size("--near-budget", "Near memory for the heap (default: at the knee of the curve)."),
]
Far = Annotated[
    list[str] | None,
    flags.text(
        "--far",
        "PROFILE|TIER",
        "Far memory: a device profile, or a tier of this machine; repeat for several "
        "(default: cxl-asic).",
    ),
]
Near = Annotated[
    str, flags.text("--near", "PROFILE|TIER", "Near memory (dram: as on this machine).")
]
Host = Annotated[
    str, flags.text("--host", "HOST", "Host whose caches are modeled: this, a name, a file.")
]
Time = Annotated[
    str,
    typer.Option(
        "--time",
        metavar="TIME",
        help="Time limit of each run, untraced and traced.",
        callback=flags.a_time,
    ),
]
IgnoreFailure = Annotated[
    bool,
    typer.Option("--ignore-failure", help="Accept a program that exits with a nonzero code."),
]


def advise(
    program: flags.Program,
    near_budget: Budget = None,
    far: Far = None,
    near: Near = "dram",
    host: Host = "this",
    llc: flags.LastCache = None,
    remeasure: flags.Remeasure = False,
    time: Time = "5min",
    ignore_failure: IgnoreFailure = False,
    out: flags.Out = None,
    json: flags.Json = None,
    strict: flags.Strict = False,
    quiet: flags.Quiet = False,
) -> None:
    """Predict the slowdown of a program on far memory and plan which of its data stays near.

    The program runs unmodified to be timed, and once more under an emulator to record which
    accesses miss the caches and which call site allocated the data. A model of the core's stall
    time gives the cost of each site in far memory. The plan keeps the set of sites near that saves
    the most time; `nearfar run --plan PLAN` applies it, and --check verifies it. Without
    --near-budget, the budget is the knee of the curve of slowdown against near memory.

    The program runs several times (a short one up to ten times). A file that is standard input is
    read from its start each time; a pipe or a terminal is not passed on, and the program's output
    is discarded. A run that exceeds --time is stopped, and the result covers the part that ran.
    Programs that it starts are included. A program that fails gets no result, nor does one
    whose child programs cannot be traced and use much of the CPU time.

    Examples:

        nearfar advise -- ./program its arguments

        nearfar advise --near-budget 256MiB --far cxl-asic --far optane-100 -- ./program

        nearfar advise --far numa:1 --json advice.json -- python3 script.py
    """
    from nearfar import api
    from nearfar.process.stdin import of_this_process
    from nearfar.report import terminal
    from nearfar.report.console import note
    from nearfar.report.html import page

    done = api.advise(
        program,
        flags.options(out=out, quiet=quiet),
        near_budget=near_budget,
        far=far or ["cxl-asic"],
        near=near,
        host=api.HostChoice(host, remeasure, llc),
        time_s=parse_seconds(time),
        ignore_failure=ignore_failure,
        stdin=of_this_process(),
    )
    try:
        show_measured(done, terminal.advice(done.result), Output(json, strict, quiet))
    finally:  # the answer first, also if --strict refuses it
        report = page.write_report(done.folder, done.run)
        if not quiet:
            note(f"report: {report}")
