"""``nearfar trace -o T -- PROGRAM``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.trace._shared import Output
from nearfar.records.choices import TraceLevel, TraceRecorder

if TYPE_CHECKING:
    from nearfar.workflows.tracing import Traced

Recorder = Annotated[
    TraceRecorder,
    typer.Option(
        "--recorder", help="qemu: for any program; instrumented: for one that was compiled for it."
    ),
]
Host = Annotated[str, flags.text("--host", "HOST", "Host with the caches: this, a name, a .toml.")]
After = Annotated[
    TraceLevel | None,
    typer.Option("--after", help="Last modeled cache level.", show_default="the last"),
]
Prefetch = Annotated[
    bool, typer.Option("--prefetch/--no-prefetch", help="Model the prefetcher of the second level.")
]
L1 = Annotated[str | None, flags.text("--l1", "SIZE/WAYS", "L1 instead of the host's: 32KiB/8.")]
L2 = Annotated[str | None, flags.text("--l2", "SIZE/WAYS", "Likewise.")]


def record(
    program: flags.Program,
    output: Output,
    recorder: Recorder = "qemu",
    host: Host = "this",
    after: After = None,
    prefetch: Prefetch = True,
    l1: L1 = None,
    l2: L2 = None,
    llc: flags.LastCache = None,
    remeasure: flags.Remeasure = False,
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
    from nearfar import api

    replaced = {"l1": l1, "l2": l2, "llc": llc}
    done = api.trace(
        program,
        output,
        caches=api.CachesWanted(host, after, prefetch, replaced, remeasure),
        recorder=recorder,
        aside=json == "-",
        progress=flags.progress_of(quiet),
    )
    _show(done, json, quiet)
    return done.exit_code


def _show(done: Traced, json: str | None, quiet: bool) -> None:
    """Print notes and a summary on standard error: standard output belongs to the program."""
    from json import dumps

    from nearfar.report.console import note, write_documents
    from nearfar.report.terminal.traces import recorded

    failure = done.recorded.failure
    shown = done.notes
    if quiet:  # a failed program is not a note
        shown = [failure] if failure else []
    for line in shown:
        note(f"nearfar: {line}")
    write_documents(dumps(done.document(), indent=1), json)
    if not quiet:
        note(recorded(done.file, done.recorded.collected))
