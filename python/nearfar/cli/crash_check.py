"""``nearfar crash check``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import exploring, options


class Structure(StrEnum):
    """Persistent structures of nearfar's own."""

    MAP = "map"
    LIST = "list"
    SKIP_LIST = "skip_list"
    QUEUE = "queue"
    MOVE = "move"
    MAP_ATOMIC = "map_atomic"
    MAP_TX = "map_tx"
    MAP_RP = "map_rp"


class Recovery(StrEnum):
    """Who recovers an image of a structure that stands on libpmemobj."""

    REPLAYED = "replayed"
    LIBRARY = "library"


#: One in so many images is opened by libpmemobj too, where its logs are replayed.
CONFIRM_EVERY = 100


def check(
    structure: Annotated[Structure, typer.Option("--structure", help="What is put to the test.")],
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Operations.")] = 200,
    seed: options.Seed = 1,
    recovery: Annotated[
        Recovery | None,
        typer.Option("--recovery", help="Of map_atomic, map_tx, map_rp (default: replayed)."),
    ] = None,
    platform: exploring.PlatformFlag = exploring.Platform.ADR,
    budget: exploring.Budget = 0,
    images: exploring.Images = None,
    json: options.Json = None,
    sarif: exploring.Sarif = None,
    quiet: options.Quiet = False,
) -> int:
    """Explore every image that a crash can leave of one of nearfar's own structures.

    A seeded mix of insertions and removals (and, with `move`, of moves from one list to another,
    each a transaction of the typed layer) is recorded; recovery then runs on each image that a
    power cut could leave, also on those of a cut during recovery. Each must hold what a plain DRAM
    model holds after the acknowledged operations, with or without the one in flight, and leak
    nothing. Exits with 1 on a violation.

    map_atomic, map_tx and map_rp work through libpmemobj. Its logs are replayed by nearfar's own
    code on every image, and one image in a hundred is opened by libpmemobj too; with
    `--recovery library` every one is. It must find the same.

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
            f"{structure.value} recovers by itself", f"drop --recovery {recovery.value}"
        )
    asked: dict[str, object] = {
        "structure": structure.value, "n": n, "seed": seed, "platform": platform.value,
    }  # fmt: skip
    folder = folder_for(images)
    try:
        result = exploring.explore(
            "check",
            {**asked, "budget": budget, "images": folder,
             "confirm_every": 1 if recovery is Recovery.LIBRARY else CONFIRM_EVERY},
            quiet or json == "-",
        )  # fmt: skip
        keep(result, folder, {"verb": "check", **asked})
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return exploring.show(result, {"verb": "crash check", **asked}, json, sarif)
