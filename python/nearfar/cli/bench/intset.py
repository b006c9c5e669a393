"""``nearfar bench intset``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.errors import BadInputError


def _known(name: str) -> str:
    from nearfar._native import intset_structures

    known = intset_structures()
    if name not in known:
        raise BadInputError(f"unknown set '{name}'", f"choose one of: {', '.join(known)}")
    return name


Structure = Annotated[
    str,
    typer.Option(
        "--structure",
        metavar="NAME",
        help="list (sorted), hash, skip_list, or one you added.",
        callback=_known,
    ),
]
Tier = Annotated[
    str,
    flags.text("--tier", "TIER", "dram, shm:, numa:N, fsdax:DIR, devdax:DEVICE, file:DIR."),
]


@flags.expand_dataclasses
def intset(
    structure: Structure = "hash",
    entries: flags.Entries = 1024,
    update: flags.Update = 50,
    tier: Tier = "shm:",
    *,
    shared: flags.Measuring,
) -> None:
    """Measure the persistence cost of an integer set under random look-ups and updates.

    The set is filled first. Keys are drawn from a range of twice the size, so that half of all
    operations succeed and the size stays constant. The benchmark alternates between the set in a
    pool, its volatile counterpart (`slowdown`), the same code in a pool without flushes and fences
    (`unflushed_slowdown`) and, for hash, a correct version on libpmemobj (`pmdk_ratio`); --time is
    divided among them. With a tier shm: or numa:N, DRAM emulates persistent memory: such slowdowns
    are emulated and do not describe a device; with numa:N, the volatile counterpart is on that node
    too. With file:DIR, the pool is on the disk, and every flush is an msync. devdax:DEVICE uses the
    whole device.

    Examples:

        nearfar bench intset --structure hash --entries 1024 --update 50

        nearfar bench intset --structure skip_list --tier file:. --runs 10 --time 60

        nearfar bench intset --structure list --tier dram --json -
    """
    from nearfar.report.terminal import persistent_structures
    from nearfar.workflows.bench import intset as workflow

    done = workflow.measure(structure, shared.options, entries=entries, update=update, tier=tier)
    show_measured(done, persistent_structures.intset(done.result), shared.output)
