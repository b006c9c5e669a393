"""``nearfar trace -o T -- PROGRAM``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags

if TYPE_CHECKING:
    from nearfar.tracing.recording import Recorded


#: Of what is collected: the totals are merged into it, the others are for `advise`.
_NOT_IN_JSON = {"totals", "touched", "touches"}


class Recorder(StrEnum):
    """How accesses are recorded."""

    QEMU = "qemu"
    INSTRUMENTED = "instrumented"


class After(StrEnum):
    """The cache level below which the trace is taken."""

    L1 = "l1"
    L2 = "l2"
    LLC = "llc"


Host = Annotated[
    str, typer.Option("--host", metavar="HOST", help="Host with the caches: this, a name, a .toml.")
]
AfterFlag = Annotated[
    After | None,
    typer.Option("--after", help="Last modeled cache level.", show_default="the last"),
]
Prefetch = Annotated[
    bool, typer.Option("--prefetch/--no-prefetch", help="Model the prefetcher of the second level.")
]
L1 = Annotated[
    str | None, typer.Option("--l1", metavar="SIZE/WAYS", help="L1 instead of the host's: 32KiB/8.")
]
L2 = Annotated[str | None, typer.Option("--l2", metavar="SIZE/WAYS", help="Likewise.")]
Llc = Annotated[
    str | None, typer.Option("--llc", metavar="SIZE/WAYS", help="LLC instead; `none`: two levels.")
]


def record(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]…", show_default=False)],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="T", help="Trace to write; it must not exist.")
    ],
    recorder: Annotated[
        Recorder, typer.Option("--recorder", help="For any program; or for one compiled for it.")
    ] = Recorder.QEMU,
    host: Host = "this",
    after: AfterFlag = None,
    prefetch: Prefetch = True,
    l1: L1 = None,
    l2: L2 = None,
    llc: Llc = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> int:
    """Record the memory accesses of a program below the caches of a host.

    The program is not modified: it runs in an emulator (qemu-x86_64, package qemu-user), as do its
    children and the programs that they start. The kernel is not traced. Each cache line that passes
    the last cache is recorded with the instruction, the thread, the object and the load that its
    address depends on. A trace that is interrupted, or that fills the disk, is valid up to
    there.

    The exit code is that of the program (128 plus the number of the signal that ended it), and is
    written into the trace.

    The emulator is slow with floating point and does not support AVX-512. A program that is
    compiled with the output of `nearfar trace flags` is traced natively, with --recorder
    instrumented.

    Examples:

        nearfar trace -o sort.trace -- ./sort 1000000

        nearfar trace -o py.trace --host xeon-5218r -- python3 script.py

        gcc -O2 lbm.c -o lbm $(nearfar trace flags)

        nearfar trace -o lbm.trace --recorder instrumented -- ./lbm
    """
    from nearfar.errors import BadInputError
    from nearfar.report.console import note
    from nearfar.tracing.host_caches import caches_behind
    from nearfar.tracing.recording import record as run

    caches = caches_behind(host, {"l1": l1, "l2": l2, "llc": llc})
    if after == After.LLC and caches.llc is None:
        raise BadInputError("the host has no third cache level", "give --after l2, the last level")
    done = run(
        program,
        output,
        caches,
        host=host,
        after=after or caches.last,
        prefetch=prefetch,
        recorder=recorder.value,
        aside=json == "-",
    )
    for line in [done.failure] * bool(done.failure) if quiet else done.notes:
        note(line)
    _show(done, output, json, quiet)
    return done.code


def _show(done: Recorded, output: Path, json: str | None, quiet: bool) -> None:
    from json import dumps

    from nearfar.report.console import note, write_json
    from nearfar.units import format_size

    totals = done.collected["totals"]
    if json is not None:
        summary = {
            **done.collected,
            **totals,
            "programs": [{"path": path, "instructions": n} for path, n in done.programs()],
            "exit_code": done.code,
            "file": str(output),
        }
        write_json(
            json, dumps({k: v for k, v in summary.items() if k not in _NOT_IN_JSON}, indent=1)
        )
    if not quiet:
        note(
            f"nearfar: {output}: {done.collected['records']} lines in "
            f"{format_size(done.collected['size_bytes'])}, of {totals['loads']} loads and "
            f"{totals['stores']} stores in {done.collected['threads']} threads; not traced: the "
            "kernel, instruction fetches\n"
            f"  next: nearfar trace stats {output}"
        )
