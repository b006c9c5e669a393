"""``nearfar pool shred``: overwrite a pool so that what was in it cannot be read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli.options import Json, Quiet
from nearfar.cli.pools import File
from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path

    from nearfar._native import PoolShredded

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask: overwrite the file.")]


def shred(file: File, yes: Yes = False, json: Json = None, quiet: Quiet = False) -> None:
    """Overwrite a pool with random bytes, flush it, read it again, and say what was not reached.

    For pools that held secrets. The file stays, with its name and size. A pool that another process
    has open is refused. Stopped half-way, the same command begins anew.

    Example: `nearfar pool shred /mnt/pmem/old.pool --yes && rm /mnt/pmem/old.pool`
    """
    from json import dumps

    from nearfar._native import pool_shred
    from nearfar.cli.console import progress, write_json
    from nearfar.cli.pools import print_plain

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
    """Ask on a terminal; elsewhere only ``--yes`` will do."""
    import sys

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInputError(
            f"{file} would be overwritten, and there is no terminal to ask on",
            "give --yes if that is what you want",
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
    """Where old bytes may still lie, as far as the file system tells."""
    system = done["file_system"]
    told = []
    if done["copies_on_write"]:
        told.append(
            f"old blocks: {system} may keep what was overwritten, in shared extents or snapshots"
        )
    if done["in_memory"]:
        told.append(f"swap: {system} lives in memory, and its pages may have been swapped out")
    if done["read_from_cache"]:
        told.append("the medium itself: what was compared came from memory")
    told.append(
        "blocks that an SSD or a memory module has remapped; encrypt, or destroy the device"
    )
    told.append("snapshots of the volume or the machine, backups, replicas, and copies of the file")
    if file.stat().st_nlink > 1:
        told.append("nothing under its other names: hard links show the overwritten bytes too")
    return told
