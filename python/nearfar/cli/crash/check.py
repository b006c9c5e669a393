"""``nearfar crash check``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.cli.crash import _exploring


class Structure(StrEnum):
    """Persistent structures of nearfar."""

    MAP = "map"
    LIST = "list"
    SKIP_LIST = "skip_list"
    QUEUE = "queue"
    MOVE = "move"
    MAP_ATOMIC = "map_atomic"
    MAP_TX = "map_tx"
    MAP_RP = "map_rp"


class Recovery(StrEnum):
    """What recovers an image of a structure that is built on libpmemobj."""

    REPLAYED = "replayed"
    LIBRARY = "library"


#: Every Nth image is also opened by libpmemobj, where nearfar replays the logs.
CONFIRM_EVERY = 100


def check(
    structure: Annotated[Structure, typer.Option("--structure", help="Structure to check.")],
    n: Annotated[
        int, typer.Option("-n", metavar="N", min=1, max=ranges.MOST_OPERATIONS, help="Operations.")
    ] = 200,
    seed: flags.Seed = 1,
    recovery: Annotated[
        Recovery | None,
        typer.Option("--recovery", help="For map_atomic, map_tx, map_rp (default: replayed)."),
    ] = None,
    platform: _exploring.PlatformFlag = _exploring.Platform.ADR,
    budget: _exploring.Budget = 0,
    images: _exploring.Images = None,
    json: flags.Json = None,
    sarif: _exploring.Sarif = None,
    quiet: flags.Quiet = False,
) -> int:
    """Check every image that a crash can leave of one of nearfar's own structures.

    Records a seeded mix of insertions and removals (and, with `move`, of moves between two lists,
    each a transaction of the typed layer). Then runs recovery on each image that a power cut could
    leave, including a power cut during recovery. Each recovered image must equal a model in DRAM
    after the acknowledged operations, with or without the operation in flight, and must leak
    nothing. Exits with 1 on a violation, and with 3 if the budget ended before every store was
    tried.

    map_atomic, map_tx and map_rp use libpmemobj. nearfar's own code replays its logs on every
    image, and libpmemobj also opens one image in a hundred; with `--recovery library` it opens
    every one. Both must find the same content.

    Examples:

        nearfar crash check --structure map

        nearfar crash check --structure queue -n 1000 --seed 7 --platform eadr --json -

        nearfar crash check --structure map_tx --recovery library --budget 5000
    """
    from nearfar.errors import BadInputError
    from nearfar.verify.images import folder_for, keep
    from nearfar.verify.structures import ON_LIBPMEMOBJ

    if recovery is not None and structure not in ON_LIBPMEMOBJ:
        raise BadInputError(
            f"{structure.value} does not use libpmemobj", f"leave out --recovery {recovery.value}"
        )
    asked: dict[str, object] = {
        "structure": structure.value,
        "n": n,
        "seed": seed,
        "platform": platform.value,
    }
    folder = folder_for(images)
    try:
        result = _exploring.explore(
            "check",
            {
                **asked,
                "budget": budget,
                "images": folder,
                "confirm_every": 1 if recovery is Recovery.LIBRARY else CONFIRM_EVERY,
            },
            quiet or json == "-",
        )
        keep(result, folder, {"verb": "check", **asked})
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return _exploring.show(result, {"verb": "crash check", **asked}, json, sarif)
