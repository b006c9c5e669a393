"""``nearfar run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options

if TYPE_CHECKING:
    from nearfar.place.accounts import RunAccounts
    from nearfar.place.preload import Placement
    from nearfar.place.promise import Promise


def run(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="PLAN", help="Which allocations go where (a plan file)."),
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option(
            "--tier", metavar="NAME=TIER", help="A tier, such as far=numa:1; repeat for several."
        ),
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Show afterwards what was allocated where.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Hold the run against what the plan promises; 1 if broken."),
    ] = False,
    traffic: Annotated[
        bool,
        typer.Option(
            "--traffic/--no-traffic",
            help="With --check: run it once more, traced, and compare accesses site by site.",
        ),
    ] = True,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> int:
    """Run a program with its heap where you want it.

    The program is not changed: libhmalloc is preloaded and takes the place of malloc. With a plan,
    each allocation goes where the plan's rules say; without one, the whole heap goes to the tier
    that is named. Signals are passed on, and the program's exit code is returned (128 and the
    signal's number if one killed it, 126 or 127 if it could not be started). With --json -, what
    the program writes to its standard output goes to standard error.

    With --check, the run is held against the promise in the plan, which `nearfar advise` wrote:
    where the blocks of each rule went, on which nodes the kernel has put their pages, how much each
    site allocated. Then it is run once more under an emulator, without standard input and without
    its output shown, to count the lines of memory that each site reads and writes; --no-traffic
    leaves that out. A broken promise is told, and the exit code is 1 if the program's own is 0.

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
    """Adds what became of the promise, where the library counted anything."""
    from nearfar.cli.traffic import traffic_of
    from nearfar.place.checking import hold

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
        raise BadInputError("--check holds a run against a plan", "give --plan FILE")
    return read_promise(placement.plan)


def _verdict(accounts: RunAccounts) -> int:
    """The exit code of a checked run whose program returned 0."""
    from nearfar.errors import ExitCode, MachineError

    if accounts.check is None:
        raise MachineError(
            f"{accounts.program[0]} cannot be checked: it left no statistics",
            "check a dynamically linked program that ends by exit() or a return of main",
        )
    return ExitCode.OK if accounts.check.kept else ExitCode.VIOLATION


def _placement(plan: Path | None, tiers: list[str]) -> Placement:
    from nearfar.errors import BadInputError
    from nearfar.place.preload import Placement, parse_tiers

    if plan and not plan.is_file():
        raise BadInputError(
            f"there is no plan {plan}",
            "`nearfar advise -- PROGRAM` writes one; docs/hmalloc.md tells their form",
        )
    return Placement(plan, parse_tiers(tiers))


def _tell_if_ignored(program: str) -> None:
    from nearfar.cli.console import note
    from nearfar.place.program import find, ignores_preload

    file = find(program)
    why = ignores_preload(file) if file else ""
    if why:
        note(f"nearfar: {why}: no library can be preloaded, and its memory stays where it is")


def _run(program: list[str], variables: dict[str, str], *, aside: bool) -> tuple[int, int]:
    """Process number (0 if it was not started) and exit code."""
    from nearfar.cli.console import note
    from nearfar.place.running import StartError, run

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
    from nearfar.cli.console import note
    from nearfar.place.accounts import RunAccounts, read

    processes = read(folder, process)
    if not any(found.process == process for found in processes):
        note(f"nearfar: {program[0]} left no statistics: it did not end by exit(), or is one that "
             "no library can be preloaded into")  # fmt: skip
    return RunAccounts(
        program=program,
        exit_code=code,
        plan=str(placement.plan) if placement.plan else None,
        tiers=dict(placement.tiers),
        processes=processes,
    )


def _show(accounts: RunAccounts, stats: bool, json: str | None) -> None:
    """The table goes to standard error: standard output is the program's."""
    from nearfar.cli.console import print_aside, write_json
    from nearfar.report import text

    if stats:
        print_aside(text.run_accounts(accounts))
    if accounts.check:
        print_aside(text.plan_check(accounts.check))
    if json is not None:
        write_json(json, accounts.model_dump_json(indent=1, exclude_none=True))
