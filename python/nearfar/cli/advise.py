"""``nearfar advise``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags

if TYPE_CHECKING:
    from nearfar.workflows.advising import Wanted


def advise(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)],
    near_budget: Annotated[
        str | None,
        typer.Option(
            "--near-budget",
            metavar="SIZE",
            help="Near memory for the heap (default: at the knee of the curve).",
            callback=flags.a_size,
        ),
    ] = None,
    far: Annotated[
        list[str] | None,
        typer.Option(
            "--far",
            metavar="PROFILE|TIER",
            help="Far memory: a device profile, or a tier of this machine; repeat for several "
            "(default: cxl-asic).",
        ),
    ] = None,
    near: Annotated[
        str,
        typer.Option(
            "--near", metavar="PROFILE|TIER", help="Near memory (dram: as on this machine)."
        ),
    ] = "dram",
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Host whose caches are modeled.")
    ] = "this",
    time: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="TIME",
            help="Time limit of each run, untraced and traced.",
            callback=flags.a_time,
        ),
    ] = "5min",
    ignore_failure: Annotated[
        bool,
        typer.Option("--ignore-failure", help="Accept a program that exits with a nonzero code."),
    ] = False,
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

    The program runs several times (a short one up to ten times) without standard input; its output
    is discarded. A run that exceeds --time is stopped, and the result covers the part that ran.
    Programs that it starts are included. There is no result for a program that fails, or if child
    programs that cannot be traced use much of the CPU time.

    Examples:

        nearfar advise -- ./program its arguments

        nearfar advise --near-budget 256MiB --far cxl-asic --far optane-100 -- ./program

        nearfar advise --far numa:1 --json advice.json -- python3 script.py
    """
    from nearfar.report import terminal
    from nearfar.workflows import advising
    from nearfar.workflows.recording import Kept, recorded

    wanted = _wanted(program, near_budget, far, near, host, time, ignore_failure=ignore_failure)
    arguments = {
        "program": program,
        "near_budget": near_budget,
        "far": list(wanted.far),
        "near": near,
        "host": host,
        "time_s": wanted.time_s,
    }
    with recorded("advise", arguments, Kept(1, out, strict, quiet)) as recording:
        result, skipped = advising.run(wanted, recording)
        recording.keep("advice", result, skipped)
    recording.show(terminal.advice(result), recording.document(result), json)


def _wanted(
    program: list[str],
    near_budget: str | None,
    far: list[str] | None,
    near: str,
    host: str,
    time: str,
    *,
    ignore_failure: bool,
) -> Wanted:
    from nearfar.units import parse_seconds, parse_size
    from nearfar.workflows.advising import Wanted

    return Wanted(
        program=tuple(program),
        budget=parse_size(near_budget) if near_budget is not None else None,
        far=tuple(far or ["cxl-asic"]),
        near=near,
        host=host,
        time_s=parse_seconds(time),
        ignore_failure=ignore_failure,
    )
