"""``nearfar bench intset``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags, ranges


@flags.grouped
def intset(
    structure: Annotated[
        str,
        typer.Option(
            "--structure", metavar="NAME", help="list (sorted), hash, skip_list, or one you added."
        ),
    ] = "hash",
    entries: Annotated[
        int,
        typer.Option(
            "-n", metavar="N", min=1, max=ranges.MOST_COUNT, help="Initial entries (1024)."
        ),
    ] = 1024,
    update: Annotated[
        int,
        typer.Option(
            "--update", metavar="PERCENT", min=0, max=100, help="Updates, % of operations."
        ),
    ] = 50,
    tier: Annotated[
        str,
        typer.Option(
            "--tier", metavar="TIER", help="dram, shm:, numa:N, fsdax:DIR, devdax:DEVICE, file:DIR."
        ),
    ] = "shm:",
    *,
    shared: flags.Measuring,
) -> None:
    """Measure the persistence cost of an integer set under random look-ups and updates.

    The set is filled first. Keys are drawn from a range of twice the size, so that half of all
    operations succeed and the size stays constant. The benchmark alternates between the set in a
    pool, its volatile counterpart (the same code without flushes and fences) and, for hash, a
    correct version on libpmemobj; --time is divided among them. On shm: and numa: DRAM emulates
    persistent memory: such slowdowns are emulated and do not describe a device. On numa:N the
    volatile counterpart is on that node too. On file: the pool is on the disk, and every flush is
    an msync. devdax: uses the whole device.

    Examples:

        nearfar bench intset --structure hash -n 1024 --update 50

        nearfar bench intset --structure skip_list --tier file:. --runs 10 --time 60

        nearfar bench intset --structure list --tier dram --json -
    """
    from nearfar.measure import intset as measurement
    from nearfar.measure import pools
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows.plans import chosen_cpus
    from nearfar.workflows.recording import recorded

    budget_s = shared.budget_s(10.0)
    repeats = shared.runs or measurement.RUNS
    arguments = {
        "structure": structure,
        "entries": entries,
        "update_percent": update,
        "tier": tier,
        "time_s": budget_s,
    }
    with recorded("bench intset", arguments, shared.kept) as recording:
        pools.require_pools()
        cpu = chosen_cpus(recording.machine, shared.cpus)[0]
        plan = measurement.plan_for(structure, entries, update, tier, cpu, budget_s / repeats)
        effort = Effort(budget_s, repeats, shared.warmup)
        result = measurement.measure(recording.session, plan, effort)
        recording.keep("intset", result, [])
    recording.show(terminal.intset(result), recording.document(result), shared.json)
