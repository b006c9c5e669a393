"""``nearfar pool leaks``: find unreachable objects."""

from __future__ import annotations

from nearfar.cli.flags import Json
from nearfar.cli.output import show_document
from nearfar.cli.pool._shared import File


def leaks(file: File, json: Json = None) -> int:
    """Find persistent leaks: allocated objects that cannot be reached from the root object.

    Conservative: each aligned 8-byte word of a reached object that could be an offset of another
    object, as in a PMEMoid, counts as a link. A leak is missed if a number looks like an offset.
    Conversely, if a program stores links in another form, reachable objects are reported as lost.
    Objects of nearfar's typed layer are followed by exactly the links that their types declare.
    Exits with 1 if an object is lost or the pool is damaged.

    Example: `nearfar pool leaks /mnt/pmem/data.pool`
    """
    from nearfar.report.terminal import pool_files
    from nearfar.workflows.pool_files import find_leaks

    found = find_leaks(file)
    show_document(pool_files.leaks(found.facts, file, found.method), found.document(), json)
    return found.exit_code()
