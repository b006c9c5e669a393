"""``nearfar trace import`` and ``nearfar trace export``."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.trace.stats import File


class Form(StrEnum):
    """Format of the other simulator."""

    RAMULATOR = "ramulator"
    DRAMSIM3 = "dramsim3"
    CHAMPSIM = "champsim"


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    form: Annotated[Form, typer.Option("--from", help="Format of the input.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="T", help="Trace to write; it must not exist.")
    ],
    quiet: flags.Quiet = False,
) -> None:
    """Import another simulator's trace: its accesses verbatim, with no cache in between.

    Example: `nearfar trace import requests.txt --from dramsim3 -o T`
    """
    from nearfar._native import trace_import
    from nearfar.report.console import note
    from nearfar.tracing.recording import NewTrace

    with NewTrace(output) as trace:
        done = trace_import(str(file), trace.fd, form.value)
        trace.keep()
    if not quiet:
        note(f"nearfar: {output}: {done['reads']} reads and {done['writes']} writes")


def export(
    file: File,
    form: Annotated[Form, typer.Option("--to", help="Format of the output.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="File to write; it must not exist."),
    ],
    quiet: flags.Quiet = False,
) -> None:
    """Export a trace for another simulator; objects, threads and dependences are lost.

    Example: `nearfar trace export T --to ramulator -o requests.trace`
    """
    from nearfar._native import trace_export
    from nearfar.errors import BadInputError
    from nearfar.report.console import note

    try:
        fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BadInputError(
            f"cannot create {output}: {error.strerror}", "name a new file after -o"
        ) from None
    try:
        done = trace_export(str(file), fd, form.value)
    except BaseException:
        output.unlink()
        raise
    finally:
        os.close(fd)
    if done["ending"]:
        note(f"nearfar: {file}: {done['ending']}")
    if not quiet:
        note(f"nearfar: {output}: {done['reads']} reads and {done['writes']} writes")
