"""``nearfar pool shred``: overwrite a pool so that its content cannot be read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli.flags import Json, Quiet
from nearfar.cli.pool._shared import File
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path

    from nearfar._native import PoolShredded

Yes = Annotated[bool, typer.Option("--yes", help="Overwrite without asking.")]


def shred(file: File, yes: Yes = False, json: Json = None, quiet: Quiet = False) -> None:
    """Overwrite a pool with random bytes, flush and verify it, and list where old data may remain.

    For pools that held secrets. The file remains, with its name and size. A pool that another
    process has open is refused. If interrupted, run the same command again: it starts over.

    Example: `nearfar pool shred /mnt/pmem/old.pool --yes && rm /mnt/pmem/old.pool`
    """
    from json import dumps

    from nearfar._native import pool_shred
    from nearfar.cli.pool._shared import print_plain
    from nearfar.report.console import progress, write_json

    _confirm(file, yes)
    with progress(quiet) as shown:
        done = pool_shred(str(file), lambda at, of: shown.step("overwriting, reading", at / of))
    unreached = _unreached(done, file)
    if json is not None:
        write_json(json, dumps(_document(done, file, unreached), indent=1))
    if json != "-":
        print_plain(
            [
                f"{file}: {done['size_bytes']} bytes overwritten, flushed, read again, compared",
                "What this cannot reach:",
                *(f"  - {one}" for one in unreached),
                f"The file is still there: rm {file}",
            ]
        )


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


def _document(done: PoolShredded, file: Path, unreached: list[str]) -> dict[str, object]:
    return {
        "file": str(file),
        "size_bytes": done["size_bytes"],
        "verified_bytes": done["size_bytes"],
        "verified_from": "page cache" if done["read_from_cache"] else "medium",
        "file_system": done["file_system"],
        "not_reached": unreached,
        "provenance": {"size_bytes": "measured", "verified_bytes": "measured"},
    }


def _unreached(done: PoolShredded, file: Path) -> list[str]:
    """Return the places where old bytes may remain, according to the file system."""
    system = done["file_system"]
    remaining = []
    if done["copies_on_write"]:
        remaining.append(
            f"old blocks: {system} may keep what was overwritten, in shared extents or snapshots"
        )
    if done["in_memory"]:
        remaining.append(f"swap: {system} is in memory, and its pages may have been swapped out")
    if done["read_from_cache"]:
        remaining.append("the medium itself: what was compared came from memory")
    remaining.append(
        "blocks that an SSD or a memory module has remapped; encrypt, or destroy the device"
    )
    remaining.append(
        "snapshots of the volume or the machine, backups, replicas, and copies of the file"
    )
    if file.stat().st_nlink > 1:
        remaining.append("nothing under its other names: hard links show the overwritten bytes too")
    return remaining
