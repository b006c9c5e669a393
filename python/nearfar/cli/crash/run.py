"""``nearfar crash run``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.crash import _shared
from nearfar.units import parse_seconds

Checker = Annotated[
    str | None,
    flags.text(
        "--checker",
        "CMD|LIB.so:FUNC",
        "Command that checks an image (its path is appended), or a C function. Default: PROGRAM.",
    ),
]
Time = Annotated[
    str,
    typer.Option("--time", metavar="TIME", help="Time limit of one check.", callback=flags.a_time),
]

Hosts = Annotated[
    int,
    typer.Option(
        "--hosts", metavar="1|2", min=1, max=2, help="Hosts whose caches share the pool (CXL)."
    ),
]

Interleave = Annotated[
    int,
    flags.count(
        "--interleave",
        least=0,
        help="Most interleavings of threads to run the program with; 0: as it runs.",
    ),
]


def run(
    program: _shared.Program,
    checker: Checker = None,
    pool: _shared.Pool = None,
    recorder: _shared.Recorder = "preload",
    platform: _shared.PlatformFlag = "adr",
    hosts: Hosts = 1,
    interleave: Interleave = 0,
    budget: _shared.Budget = 20_000,
    time: Time = "10",
    images: _shared.Images = None,
    json: flags.Json = None,
    sarif: _shared.Sarif = None,
    quiet: flags.Quiet = False,
) -> int:
    """Record a program on persistent memory, and check what a crash can leave of its pool.

    The pool is the first regular file that PROGRAM maps shared and writable, or --pool. Without
    --checker, a pool of libpmemobj is inspected as by `nearfar pool check`, and PROGRAM is started
    again with the path of the image in place of the pool's. Damage, a signal, a hang and an exit
    code other than 0 are violations. They are not if they also occur on the pool without a crash:
    as it was before PROGRAM ran, or after it ended.

    With --checker, CMD opens an image and exits with 0 if the image is valid. Any other code is a
    violation: 2 if the image cannot be opened, another if its contents are wrong. The last line of
    output gives the reason.
    NEARFAR_CRASH_ACKNOWLEDGED, NEARFAR_CRASH_IN_FLIGHT and NEARFAR_CRASH_FINISHED specify what the
    image must contain (nearfar/crash_intrinsics.h). LIB.so:FUNC names a C function that does the
    same, faster (nearfar/crash_checker.h). If CMD modifies its image, crashes during its recovery
    are explored too. The output of PROGRAM goes to standard error.

    With --hosts 2, threads of PROGRAM that call nearfar_crash_host(1) run on a second host, which
    shares the pool through CXL memory. Either host dies and loses what its caches hold while the
    other goes on, or power fails for both, with and without a global persistent flush.

    With --interleave, PROGRAM is run again and again with a new pool: one of the threads that it
    creates waits before a flush, while its store can be seen but is not durable, and the others go
    on. Operations are reported with nearfar_crash_begin() and nearfar_crash_end();
    NEARFAR_CRASH_OPERATIONS has the numbers of those that had ended.

    Exits with 1 on a violation, and with 3 if the result is inconclusive: PROGRAM failed, its
    recording is truncated, or not every store, or not every interleaving, was tried.

    Examples:

        nearfar crash run -- ./program pool

        nearfar crash run --checker ./check -- ./program pool

        nearfar crash run --recorder instrumented --checker "./check --quick" -- ./program pool

        nearfar crash run --checker ./check.so:check -- ./program pool

        nearfar crash run --hosts 2 --recorder instrumented -- ./program pool

        nearfar crash run --interleave 20 --checker ./check -- ./threads pool
    """
    from nearfar.report.terminal.crash import exploration
    from nearfar.verify import sarif as sarif_documents
    from nearfar.workflows import crash_exploration

    done = crash_exploration.run_program(
        crash_exploration.ProgramWork(
            program, checker, recorder, parse_seconds(time), hosts, interleave, pool
        ),
        crash_exploration.Limits(platform, budget, images),
        flags.progress_of(quiet or json == "-"),
    )
    return _shared.show(done, exploration, sarif_documents.exploration, json, sarif)
