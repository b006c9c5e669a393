"""``nearfar pool leaks``: find unreachable objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.cli.flags import Json
from nearfar.cli.pool._shared import File
from nearfar.errors import BadInputError, ExitCode, MachineError

if TYPE_CHECKING:
    from pathlib import Path

    from nearfar._native import PoolLeaks

_METHOD = "conservative: any aligned word that could be an offset into an object counts as a link"
_BY_TYPE = "typed objects by the links that the pool's types name; other blocks conservatively"


def leaks(file: File, json: Json = None) -> int:
    """Find persistent leaks: allocated objects that cannot be reached from the root object.

    Conservative: each aligned 8-byte word of a reached object that could be an offset of another
    object, as in a PMEMoid, counts as a link. A leak is missed if a number looks like an offset.
    Conversely, if a program stores links in another form, reachable objects are reported as lost.
    Objects of nearfar's typed layer are followed by exactly the links that their types declare.
    Exits with 1 if an object is lost or the pool is damaged.

    Example: `nearfar pool leaks /mnt/pmem/data.pool`
    """
    from json import dumps

    from nearfar._native import pool_leaks
    from nearfar.cli.pool._shared import document, print_plain, require_pool
    from nearfar.report.console import write_json

    facts = pool_leaks(str(file))
    require_pool(facts, file)
    _require_sense(facts, file)
    counts = {key: facts[key] for key in ("objects", "lost", "lost_bytes")}
    if json is not None:
        head = document(facts, file, **counts)
        write_json(
            json, dumps({**head, "method": _method(facts), "types": facts["types"]}, indent=1)
        )
    if json != "-":
        print_plain(_lines(facts, file))
    return int(ExitCode.VIOLATION if facts["lost"] else ExitCode.OK)


def _method(facts: PoolLeaks) -> str:
    return _BY_TYPE if facts["by_type"] else _METHOD


def _require_sense(facts: PoolLeaks, file: Path) -> None:
    """Raise if reachability has no meaning: damage, no root, or logs not replayed."""
    from nearfar.errors import NearfarError

    if facts["damage"]:
        first = next(one for one in facts["findings"] if one["severity"] == "damage")
        raise NearfarError(
            f"{file} is damaged: {first['what']} (at {first['offset']:#x})",
            f"run nearfar pool check {file}",
        )
    if not facts["descriptor"]["root_offset"]:
        raise BadInputError(
            f"{file} has no root object, so nothing in it can be reached",
            "its programs find objects by type (pmemobj_first): run nearfar pool info",
        )
    if not facts["replayed"]:
        raise MachineError(
            f"{file} holds unfinished transactions too large to be replayed here",
            "open it with its own program once, which recovers it",
        )


def _lines(facts: PoolLeaks, file: Path) -> list[str]:
    from nearfar.units import format_size

    lines = []
    for lost in sorted(facts["types"], key=lambda one: -one["block_bytes"]):
        places = ", ".join(f"{offset:#x}" for offset in lost["examples"])
        lines.append(
            f"type {lost['name'] or lost['type']}: {lost['objects']} lost, "
            f"{format_size(lost['block_bytes'])}; "
            f"{lost['heads']} that no lost one leads to; at {places}"
            + (", …" if lost["objects"] > len(lost["examples"]) else "")
        )
    size = format_size(facts["lost_bytes"])
    verdict = f"{facts['lost']} of {facts['objects']} objects are lost ({size})"
    if not facts["lost"]:
        verdict = f"all {facts['objects']} objects can be reached"
    return [*lines, f"{file}: {verdict}", _method(facts)]
