"""``nearfar pool check``: check whether a pool is consistent."""

from __future__ import annotations

from nearfar.cli.flags import Json
from nearfar.cli.pool._shared import File


def check(file: File, json: Json = None) -> int:
    """Check a libpmemobj pool without opening it; exit with 1 and the offsets if it is damaged.

    Reads header, descriptor, all logs of all lanes, zones, chunks, bitmaps and object headers as
    untrusted bytes; follows no pointer, maps and writes nothing. Logs of unfinished operations are
    replayed in memory, so that a pool left by a crash does not count as damaged.

    Example: `nearfar pool check /mnt/pmem/data.pool`
    """
    from json import dumps

    from nearfar._native import pool_examine
    from nearfar.cli.pool._shared import document, finding_lines, print_plain, require_pool, verdict
    from nearfar.report.console import write_json

    facts = pool_examine(str(file))
    require_pool(facts, file)
    counted = facts["all_objects"]["objects"]
    if json is not None:
        write_json(json, dumps(document(facts, file, objects=counted), indent=1))
    if json != "-":
        lines = finding_lines(facts["findings"])
        missing = facts["damage"] + facts["notes"] - len(lines)
        if missing:
            lines.append(f"and {missing} more")
        end = "damaged: do not open it" if facts["damage"] else "consistent"
        print_plain([*lines, f"{file}: {end} ({counted} objects looked at)"])
    return verdict(facts)
