"""``nearfar run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags

if TYPE_CHECKING:
    from nearfar.place.accounts import RunAccounts
    from nearfar.place.preload import Placement
    from nearfar.place.promise import Promise


def run(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="PLAN", help="Plan file: the tier of each allocation site."),
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option(
            "--tier",
            metavar="NAME=TIER",
            help="Name and tier, such as far=numa:1; repeat for several.",
        ),
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Print allocations by tier after the run.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Verify the run against the plan's promise; exit 1 if broken."
        ),
    ] = False,
    traffic: Annotated[
        bool,
        typer.Option(
            "--traffic/--no-traffic",
            help="With --check: also trace a second run, and compare accesses by site.",
        ),
    ] = True,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> int:
    """Run a program with its heap on given memory tiers.

    The program is not modified: libhmalloc is preloaded and replaces malloc. With a plan, each
    allocation goes to the tier that the plan's rules specify; without one, the whole heap goes to
    the named tier. Signals are forwarded, and the exit code is that of the program (128 plus the
    signal's number if a signal killed it, 126 or 127 if it could not be started). With --json -,
    the program's standard output goes to standard error.

    --check compares the run with the promise in the plan, which `nearfar advise` wrote: where the
    blocks of each rule were allocated, on which nodes the kernel placed their pages, and how much
    each site allocated. Then the program runs again under an emulator, without standard input and
    with its output discarded, to count the cache lines that each site reads and writes;
    --no-traffic omits that run. A broken promise is reported, and the exit code is 1 if the
    program's own is 0.

    Examples:

        nearfar run --tier far=numa:1 -- ./program --its-own-flag

        nearfar run --tier far=fsdax:/mnt/pmem,capacity=8GiB --stats -- python3 script.py

        nearfar run --plan program.plan --tier far=numa:1 --json stats.json -- ./program

        nearfar run --plan program.plan --check -- ./program
    """
    import tempfile

    from nearfar.place import preload

    placement = _placement(plan, tier or [])
    if not quiet:
        _tell_if_ignored(program[0])
    promise = _promise(placement) if check else None
    wanted = stats or check or json is not None
    with tempfile.TemporaryDirectory(prefix="nearfar-run-") as folder:
        variables = preload.environment(placement, Path(folder) if wanted else None, rules=check)
        preload.check(variables)
        process, code = _run(program, variables, aside=json == "-")
        if not wanted or not process:
            return code
        accounts = _accounts(program, code, placement, Path(folder), process)
    if promise:
        _check(accounts, placement, promise, traced=traffic and not code)
    _show(accounts, stats, json)
    return code or (_verdict(accounts) if check else 0)


def _check(accounts: RunAccounts, placement: Placement, promise: Promise, *, traced: bool) -> None:
    """Add the result of the check, if the library counted anything."""
    from nearfar.place.checking import hold
    from nearfar.workflows.traffic import traffic_of

    if not any(found.rules for found in accounts.processes):
        return
    counted = None
    if traced and placement.plan is not None:
        counted = traffic_of(accounts.program, placement.plan, promise)
    accounts.check = hold(promise, accounts.processes, counted)


def _promise(placement: Placement) -> Promise:
    from nearfar.errors import BadInputError
    from nearfar.place.promise import read_promise

    if placement.plan is None:
        raise BadInputError("--check requires a plan", "give --plan FILE")
    return read_promise(placement.plan)


def _verdict(accounts: RunAccounts) -> int:
    """Return the exit code of a checked run whose program returned 0."""
    from nearfar.errors import ExitCode, MachineError

    if accounts.check is None:
        raise MachineError(
            f"{accounts.program[0]} cannot be checked: it left no statistics",
            "check a dynamically linked program that ends by exit() or a return from main",
        )
    return ExitCode.OK if accounts.check.kept else ExitCode.VIOLATION


def _placement(plan: Path | None, tiers: list[str]) -> Placement:
    from nearfar.errors import BadInputError
    from nearfar.files import read_text
    from nearfar.place.preload import Placement, parse_tiers

    if plan:
        next_step = "`nearfar advise -- PROGRAM` writes one; docs/hmalloc.md describes the format"
        if not plan.is_file():
            raise BadInputError(f"no such plan: {plan}", next_step)
        read_text(plan, next_step)
    return Placement(plan, parse_tiers(tiers))


def _tell_if_ignored(program: str) -> None:
    from nearfar.process.elf import find, ignores_preload
    from nearfar.report.console import note

    file = find(program)
    why = ignores_preload(file) if file else ""
    if why:
        note(f"nearfar: {why}: no library can be preloaded, and its memory is not redirected")


def _run(program: list[str], variables: dict[str, str], *, aside: bool) -> tuple[int, int]:
    """Run the program; return its process number (0 if it did not start) and its exit code."""
    from nearfar.process.launch import StartError, run
    from nearfar.report.console import note

    try:
        return run(program, variables, aside=aside)
    except StartError as error:
        note(f"nearfar: cannot start {program[0]}: {error.why}\n  next: check its name and mode")
        return 0, error.code


def _accounts(
    program: list[str],
    code: int,
    placement: Placement,
    folder: Path,
    process: int,
) -> RunAccounts:
    from nearfar.place.accounts import RunAccounts, read
    from nearfar.report.console import note

    processes = read(folder, process)
    if not any(found.process == process for found in processes):
        note(
            f"nearfar: {program[0]} left no statistics: it did not end by exit(), or no library "
            "can be preloaded into it"
        )
    return RunAccounts(
        program=program,
        exit_code=code,
        plan=str(placement.plan) if placement.plan else None,
        tiers=dict(placement.tiers),
        processes=processes,
    )


def _show(accounts: RunAccounts, stats: bool, json: str | None) -> None:
    """Print the table on standard error: standard output belongs to the program."""
    from nearfar.report import terminal
    from nearfar.report.console import print_aside, write_json

    if stats:
        print_aside(terminal.run_accounts(accounts))
    if accounts.check:
        print_aside(terminal.plan_check(accounts.check))
    if json is not None:
        write_json(json, accounts.model_dump_json(indent=1, exclude_none=True))
