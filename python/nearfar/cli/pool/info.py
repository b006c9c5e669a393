"""``nearfar pool info``: show the content of a pool."""

from __future__ import annotations

from nearfar.cli.flags import Json
from nearfar.cli.pool._shared import File


def info(file: File, json: Json = None) -> int:
    """Show a libpmemobj pool: header, lanes and logs, chunks, runs, objects by type and size.

    Nothing is opened or written. Damaged parts are omitted and reported, with exit code 1. Objects
    are counted as recovery would leave them.

    Example: `nearfar pool info /mnt/pmem/data.pool`, `nearfar pool info data.pool --json -`
    """
    from json import dumps

    from nearfar.report.console import print_result, write_documents
    from nearfar.report.terminal import pool_files
    from nearfar.workflows.pool_files import examine

    found = examine(file)
    if write_documents(dumps(found.info_document(), indent=1), json):
        for part in pool_files.info(found.facts, file):
            print_result(part)
    return found.exit_code()
