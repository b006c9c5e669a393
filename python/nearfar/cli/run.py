"""``nearfar run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import Output, refuse_disturbed

if TYPE_CHECKING:
    from nearfar.workflows.running import Ran

Plan = Annotated[
    Path | None, flags.text("--plan", "PLAN", "Plan file: the tier of each allocation site.")
]
Tiers = Annotated[
    list[str] | None,
    flags.text("--tier", "NAME=TIER", "Name and tier, such as far=numa:1; repeat for several."),
]
Stats = Annotated[bool, typer.Option("--stats", help="Print allocations by tier after the run.")]
Check = Annotated[
    bool,
    typer.Option("--check", help="Verify the run against the plan's promise; exit 1 if broken."),
]
Traffic = Annotated[
    bool,
    typer.Option(
        "--traffic/--no-traffic",
        help="With --check: also trace a second run, and compare accesses by site.",
    ),
]
Compare = Annotated[
    str | None,
    flags.text(
        "--compare",
        "LIST",
        "Compare times: all-near, all-far, kernel and plan files, with commas between.",
    ),
]
Runs = Annotated[
    int | None,
    flags.count("--runs", least=2, most=1000, help="With --compare: runs of each (default: 8)."),
]


def run(
    program: flags.Program,
    plan: Plan = None,
    tier: Tiers = None,
    stats: Stats = False,
    check: Check = False,
    traffic: Traffic = True,
    compare: Compare = None,
    runs: Runs = None,
    json: flags.Json = None,
    strict: flags.Strict = False,
    quiet: flags.Quiet = False,
) -> int:
    """Run a program with its heap on given memory tiers.

    The program is not modified: libhmalloc is preloaded and replaces malloc. With a plan, each
    allocation goes to the tier that the plan's rules specify. Rules may also name memory that the
    program maps, and its global variables. Without a plan, the whole heap goes to the named tier.
    Signals are forwarded, and the exit code is that of the program (128 plus the
    signal's number if a signal killed it, 126 or 127 if it could not be started). With --json -,
    the program's standard output goes to standard error.

    No library can be preloaded into a static program. Its pages are moved while it runs, as
    `nearfar place` does, if the plan has rules for mappings.

    --check compares the run with the promise in the plan, which `nearfar advise` wrote: where the
    blocks of each rule were allocated, on which nodes the kernel placed their pages, and how much
    each site allocated. Then the program runs again under an emulator, without standard input and
    with its output discarded, to count the cache lines that each site reads and writes;
    --no-traffic omits that run. A promise is broken if more than 5 % of the memory (heap, mappings
    and globals together) is not as promised; the exit code is then 1 if the program's own is 0. For
    a static program, the last known node of each page is compared.

    --compare runs the program with its memory in each of the named places, in turns and without its
    output, and compares CPU and wall time with the first. If far memory is a NUMA node, the table
    also shows the slowdown that a plan predicts. Standard input is passed on if it is a file. In
    the variant kernel the heap starts near and the kernel moves pages: NUMA balancing in tiering
    mode, with demotion, which is set for its runs (as root) and reset after each.

    Examples:

        nearfar run --tier far=numa:1 -- ./program --its-own-flag

        nearfar run --tier far=fsdax:/mnt/pmem,capacity=8GiB --stats -- python3 script.py

        nearfar run --plan program.plan --tier far=numa:1 --json stats.json -- ./program

        nearfar run --plan program.plan --check -- ./program

        nearfar run --compare all-near,all-far,program.plan --tier far=numa:1 -- ./program
    """
    from nearfar.report.console import note
    from nearfar.workflows import running

    if compare is not None:
        _refuse(
            {"--plan": plan, "--stats": stats, "--check": check, "--no-traffic": not traffic},
            "with --compare",
            "remove it; a plan is one of the variants: --compare all-near,program.plan",
        )
        _compare(program, compare, tier or [], runs, Output(json, strict, quiet))
        return 0
    _refuse({"--runs": runs, "--strict": strict}, "without --compare", "add --compare LIST")
    wanted = running.RunRequest(
        program,
        plan,
        tuple(tier or ()),
        statistics=stats or json is not None,
        check=check,
        traffic=traffic,
        aside=json == "-",
        warn=not quiet,
    )
    done = running.run(wanted, note)
    _show(done, stats, json)
    return done.exit_code()


def _refuse(given: dict[str, object], where: str, next_step: str) -> None:
    from nearfar.errors import BadInputError

    for flag, value in given.items():
        if value:
            raise BadInputError(f"{flag} has no effect {where}", next_step)


def _compare(
    program: list[str],
    names: str,
    tiers: list[str],
    runs: int | None,
    output: Output,
) -> None:
    from nearfar import api
    from nearfar.report import console
    from nearfar.report.terminal.variants import variants as table

    result = api.compare_variants(
        program, names.split(","), tiers, runs=runs, progress=flags.progress_of(output.quiet)
    )
    document = result.model_dump_json(indent=1, exclude_none=True)
    console.show(table(result), document, output.json)
    if output.strict:
        refuse_disturbed(result.disturbed)


def _show(done: Ran, stats: bool, json: str | None) -> None:
    """Print the tables on standard error: standard output belongs to the program."""
    from nearfar.report.console import print_aside, write_documents
    from nearfar.report.terminal import page_placement, run_statistics

    if done.statistics is None:
        return
    if stats:
        print_aside(run_statistics.run_statistics(done.statistics))
    if stats and done.statistics.placement:
        print_aside(page_placement.page_placement(done.statistics.placement))
    if done.statistics.check:
        print_aside(run_statistics.plan_check(done.statistics.check))
    write_documents(done.statistics.model_dump_json(indent=1, exclude_none=True), json)
