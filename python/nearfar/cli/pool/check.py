"""``nearfar pool check``: check whether a pool is consistent."""

from __future__ import annotations

from nearfar.cli.flags import Json
from nearfar.cli.output import show_document
from nearfar.cli.pool._shared import File


def check(file: File, json: Json = None) -> int:
    """Check a libpmemobj pool without opening it; exit with 1 and the offsets if it is damaged.

    Reads header, descriptor, all logs of all lanes, zones, chunks, bitmaps and object headers as
    untrusted bytes; follows no pointer, maps and writes nothing. Logs of unfinished operations are
    replayed in memory, so that a pool left by a crash does not count as damaged.

    Example: `nearfar pool check /mnt/pmem/data.pool`
    """
    from nearfar.report.terminal import pool_files
    from nearfar.workflows.pool_files import examine

    found = examine(file)
    show_document(pool_files.check(found.facts, file), found.check_document(), json)
    return found.exit_code()
