"""``nearfar pool shred``: overwrite a pool so that its content cannot be read from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_document
from nearfar.cli.pool._shared import File
from nearfar.errors import BadInputError

Yes = Annotated[bool, typer.Option("--yes", help="Overwrite without asking.")]


def shred(
    file: File, yes: Yes = False, json: flags.Json = None, quiet: flags.Quiet = False
) -> None:
    """Overwrite a pool with random bytes, flush and verify it, and list where old data may remain.

    For pools that held secrets. The file remains, with its name and size. A pool that another
    process has open is refused. If interrupted, run the same command again: it starts over.

    Example: `nearfar pool shred /mnt/pmem/old.pool --yes && rm /mnt/pmem/old.pool`
    """
    from nearfar.report.terminal import pool_files
    from nearfar.workflows import pool_files as workflow

    _confirm(file, yes)
    done = workflow.shred(file, flags.progress_of(quiet))
    text = pool_files.shredded(file, done.done["size_bytes"], done.not_reached)
    show_document(text, done.document(), json)


def _confirm(file: Path, yes: bool) -> None:
    """Ask on a terminal; without a terminal require ``--yes``."""
    import sys

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInputError(
            f"{file} would be overwritten, and there is no terminal for a confirmation",
            "give --yes to overwrite it",
        )
    if not typer.confirm(f"Overwrite all of {file}, for good?", err=True):
        raise BadInputError("not confirmed: nothing was written", "give --yes, or answer y")
