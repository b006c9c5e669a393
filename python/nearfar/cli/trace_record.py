"""``nearfar trace -o T -- PROGRAM``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options

if TYPE_CHECKING:
    from nearfar.trace.recording import Recorded


class Recorder(StrEnum):
    """How accesses are seen."""

    QEMU = "qemu"
    INSTRUMENTED = "instrumented"


class After(StrEnum):
    """Below which level of caches the trace is taken."""

    L1 = "l1"
    L2 = "l2"
    LLC = "llc"


Host = Annotated[
    str, typer.Option("--host", metavar="HOST", help="Whose caches: `this`, a name, or a .toml.")
]
AfterFlag = Annotated[
    After | None,
    typer.Option("--after", help="The level below which it is traced.", show_default="the last"),
]
Prefetch = Annotated[
    bool, typer.Option("--prefetch/--no-prefetch", help="Model the prefetcher of the second level.")
]
L1 = Annotated[
    str | None, typer.Option("--l1", metavar="SIZE/WAYS", help="Instead of the host's: 32KiB/8.")
]
L2 = Annotated[str | None, typer.Option("--l2", metavar="SIZE/WAYS", help="Likewise.")]
Llc = Annotated[
    str | None, typer.Option("--llc", metavar="SIZE/WAYS", help="Likewise; `none` for two levels.")
]


def record(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="T", help="The trace; an old one is replaced.")
    ],
    recorder: Annotated[
        Recorder, typer.Option("--recorder", help="Any program; or one compiled for it.")
    ] = Recorder.QEMU,
    host: Host = "this",
    after: AfterFlag = None,
    prefetch: Prefetch = True,
    l1: L1 = None,
    l2: L2 = None,
    llc: Llc = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> int:
    """Trace what a program asks of memory, below the caches of a host.

    The program is not changed: it runs in an emulator (qemu-x86_64, package qemu-user), its
    forked children too; the programs it starts, and the kernel, are not traced. Each line that
    passes the last cache is recorded with the instruction, the thread, the object and what its
    address was loaded from. A trace that is interrupted, or meets a full disk, is good up to there.

    The emulator is slow with floating point and knows no AVX-512: a program that is compiled with
    what `nearfar trace flags` prints is traced on the processor, with --recorder instrumented.

    Examples:

        nearfar trace -o sort.trace -- ./sort 1000000

        nearfar trace -o py.trace --host xeon-5218r -- python3 script.py

        gcc -O2 lbm.c -o lbm $(nearfar trace flags)

        nearfar trace -o lbm.trace --recorder instrumented -- ./lbm
    """
    from nearfar.cli.console import note
    from nearfar.errors import BadInputError
    from nearfar.profiles import load_host
    from nearfar.trace.caches import caches_of
    from nearfar.trace.recording import record as run

    caches = caches_of(load_host(host), {"l1": l1, "l2": l2, "llc": llc})
    if after == After.LLC and caches.llc is None:
        raise BadInputError("there is no third level of cache", "trace --after l2, the last level")
    done = run(
        program, output, caches, host=host, after=after or caches.last, prefetch=prefetch,
        recorder=recorder.value, aside=json == "-",
    )  # fmt: skip
    for line in [] if quiet else done.notes:
        note(line)
    _show(done, output, json, quiet)
    return 130 if done.code == 130 else 0


def _show(done: Recorded, output: Path, json: str | None, quiet: bool) -> None:
    from json import dumps

    from nearfar.cli.console import note, write_json
    from nearfar.units import format_size

    totals = done.collected["totals"]
    if json is not None:
        told = {**done.collected, **totals, "exit_code": done.code, "file": str(output)}
        write_json(json, dumps({k: v for k, v in told.items() if k != "totals"}, indent=1))
    if not quiet:
        note(
            f"nearfar: {output}: {done.collected['records']} lines in "
            f"{format_size(done.collected['size_bytes'])}, of {totals['loads']} loads and "
            f"{totals['stores']} stores in {done.collected['threads']} threads; not traced: the "
            "kernel, fetches of instructions, programs that it starts\n"
            f"  next: nearfar trace stats {output}"
        )
