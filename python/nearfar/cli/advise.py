"""``nearfar advise``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options

if TYPE_CHECKING:
    from nearfar.cli.advising import Wanted


def advise(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)],
    near_budget: Annotated[
        str | None,
        typer.Option("--near-budget", metavar="SIZE", help="Near memory that the heap may have."),
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
        typer.Option("--near", metavar="PROFILE|TIER", help="Near memory, as it is here: dram."),
    ] = "dram",
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Whose caches lie before memory.")
    ] = "this",
    time: Annotated[
        str,
        typer.Option("--time", metavar="TIME", help="Longest that the program is traced."),
    ] = "5min",
    out: options.Out = None,
    json: options.Json = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what a program would lose on far memory, and which of its data must stay near.

    The program is run as it is, to time it, then once more under an emulator, to see which accesses
    miss the caches and which call site allocated what they touch. A model of a core's waiting tells
    what each site costs in far memory; sites are chosen for near memory by what they gain together.
    The plan it writes is obeyed by `nearfar run --plan PLAN`, and held to with --check. Without
    --near-budget it lies at the knee of the curve of slowdown against near memory.

    The program runs two to four times, without standard input; what it writes is not shown.

    Examples:

        nearfar advise -- ./program its arguments

        nearfar advise --near-budget 256MiB --far cxl-asic --far optane-100 -- ./program

        nearfar advise --far numa:1 --json advice.json -- python3 script.py
    """
    from nearfar.cli import advising
    from nearfar.cli.recording import recorded
    from nearfar.report import text

    wanted = _wanted(program, near_budget, far, near, host, time)
    arguments = {
        "program": program, "near_budget": near_budget, "far": list(wanted.far), "near": near,
        "host": host, "time_s": wanted.time_s,
    }  # fmt: skip
    with recorded("advise", arguments, options.Kept(1, out, strict, quiet)) as recording:
        result, skipped = advising.run(wanted, recording)
        recording.keep("advice", result, skipped)
    recording.show(text.advice(result), recording.document(result), json)


def _wanted(
    program: list[str], near_budget: str | None, far: list[str] | None, near: str, host: str,
    time: str,
) -> Wanted:  # fmt: skip
    from nearfar.cli.advising import Wanted
    from nearfar.units import parse_seconds, parse_size

    return Wanted(
        program=tuple(program),
        budget=parse_size(near_budget) if near_budget else None,
        far=tuple(far or ["cxl-asic"]),
        near=near,
        host=host,
        time_s=parse_seconds(time),
    )
