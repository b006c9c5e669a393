"""``nearfar crash check``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.cli.crash import _shared
from nearfar.records.choices import CrashStructure, Recovery

Structure = Annotated[CrashStructure, typer.Option("--structure", help="Structure to check.")]
Operations = Annotated[
    int, flags.count("-n", "--operations", most=ranges.MAX_OPERATIONS, help="Operations.")
]
RecoveryFlag = Annotated[
    Recovery | None,
    typer.Option("--recovery", help="For map_atomic, map_tx, map_rp (default: replayed)."),
]


def check(
    structure: Structure,
    operations: Operations = 200,
    seed: flags.Seed = 1,
    recovery: RecoveryFlag = None,
    platform: _shared.PlatformFlag = "adr",
    budget: _shared.Budget = 0,
    images: _shared.Images = None,
    json: flags.Json = None,
    sarif: _shared.Sarif = None,
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
    from nearfar.report.terminal.crash import exploration
    from nearfar.verify import sarif as sarif_documents
    from nearfar.workflows import crash_exploration

    done = crash_exploration.check_structure(
        crash_exploration.StructureWork(structure, operations, seed, recovery),
        crash_exploration.Limits(platform, budget, images),
        flags.progress_of(quiet or json == "-"),
    )
    return _shared.show(done, exploration, sarif_documents.exploration, json, sarif)
