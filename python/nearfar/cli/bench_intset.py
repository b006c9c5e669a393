"""``nearfar bench intset``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import options


@options.grouped
def intset(
    structure: Annotated[
        str,
        typer.Option(
            "--structure", metavar="NAME", help="list (sorted), hash, skip_list, or yours."
        ),
    ] = "hash",
    entries: Annotated[
        int, typer.Option("-n", metavar="N", min=1, help="Entries at first (1024).")
    ] = 1024,
    update: Annotated[
        int, typer.Option("--update", metavar="PERCENT", min=0, max=100, help="Of operations.")
    ] = 50,
    tier: Annotated[
        str,
        typer.Option(
            "--tier", metavar="TIER", help="dram, shm:, numa:N, fsdax:DIR, devdax:DEVICE, file:DIR."
        ),
    ] = "shm:",
    *,
    shared: options.Measuring,
) -> None:
    """A set of integers under look-ups and updates at random: what durability costs.

    The set is filled first. Keys are drawn from twice as many, so that half of all operations
    succeed and the size stays. Beside a set in a pool its volatile twin is run, the same code
    without flushes and fences, and for hash a correct version on libpmemobj, in turns. --time is
    shared by all of them. On shm: and numa: DRAM stands in for persistent memory: slowdowns are
    emulated, and are no device's; on numa:N the twin lies on that node too. On file: the pool is on
    the disk, and every flush is an msync. devdax: takes the whole device.

    Examples:

        nearfar bench intset --structure hash -n 1024 --update 50

        nearfar bench intset --structure skip_list --tier file:. --runs 10 --time 60

        nearfar bench intset --structure list --tier dram --json -
    """
    from nearfar.cli.plans import chosen_cpus
    from nearfar.cli.recording import recorded
    from nearfar.measure import intset as measurement
    from nearfar.measure import pools
    from nearfar.measure.session import Effort
    from nearfar.report import text

    budget_s = shared.budget_s(10.0)
    repeats = shared.runs or measurement.RUNS
    arguments = {
        "structure": structure, "entries": entries, "update_percent": update, "tier": tier,
        "time_s": budget_s,
    }  # fmt: skip
    with recorded("bench intset", arguments, shared.kept) as recording:
        pools.require_pools()
        cpu = chosen_cpus(recording.machine, shared.cpus)[0]
        plan = measurement.plan_for(structure, entries, update, tier, cpu, budget_s / repeats)
        effort = Effort(budget_s, repeats, shared.warmup)
        result = measurement.measure(recording.session, plan, effort)
        recording.keep("intset", result, [])
    recording.show(text.intset(result), recording.document(result), shared.json)
