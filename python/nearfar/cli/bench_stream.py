"""``nearfar bench stream``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import options


class Accessor(StrEnum):
    """How the arrays come about."""

    MAPPED = "mapped"
    PMEMOBJ = "pmemobj"


@options.grouped
def stream(
    tier: options.OneTier = "dram",
    tier_a: Annotated[
        str | None, typer.Option("--tier-a", metavar="TIER", help="Tier of array a.")
    ] = None,
    tier_b: Annotated[
        str | None, typer.Option("--tier-b", metavar="TIER", help="Tier of array b.")
    ] = None,
    tier_c: Annotated[
        str | None, typer.Option("--tier-c", metavar="TIER", help="Tier of array c.")
    ] = None,
    threads: options.Threads = None,
    size: options.Size = None,
    reference_rules: Annotated[
        bool,
        typer.Option(
            "--reference-rules", help="Ten iterations on one set of arrays, the first not counted."
        ),
    ] = False,
    accessor: Annotated[
        Accessor,
        typer.Option("--accessor", help="Arrays mapped from the tier, or objects of a pool on it."),
    ] = Accessor.MAPPED,
    *,
    shared: options.Measuring,
) -> None:
    """STREAM: copy, scale, add and triad, by number of threads.

    copy is c = a, scale b = s c, add c = a + b, triad a = b + s c. Threads are pinned one to a
    processor, arrays are at least four times the last cache this machine really has, and results
    are checked against the closed form. Bytes are counted as STREAM counts them: the read of a
    line about to be stored (write-allocate) is not, so memory moves up to half as much again.

    Examples:

        nearfar bench stream

        nearfar bench stream --tier shm: --threads 1 --threads 2 --json stream.json

        nearfar bench stream --tier shm: --accessor pmemobj

        nearfar bench stream --tier-a dram --tier-b numa:1 --size 512MiB
    """
    from dataclasses import replace

    from nearfar.cli.plans import array_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure import stream as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import text

    tiers = (tier_a or tier, tier_b or tier, tier_c or tier)
    budget_s = shared.budget_s(20.0)
    arguments = {
        "tiers": tiers, "time_s": budget_s, "reference_rules": reference_rules,
        "accessor": accessor.value,
    }  # fmt: skip
    with recorded("bench stream", arguments, shared.kept) as recording:
        plan, last_cache = array_plan(
            recording,
            measurement.KERNELS,
            tiers,
            threads=threads,
            cpus=shared.cpus,
            size=size,
            runs=shared.runs,
        )
        plan = replace(plan, accessor=accessor.value)
        measurement.check(plan)
        effort = Effort(budget_s, shared.runs, shared.warmup)
        if reference_rules:
            plan = replace(plan, rounds=measurement.REFERENCE_ROUNDS)
            effort = Effort(budget_s, 1)
        result, skipped = measurement.measure(recording.session, plan, effort, last_cache)
        recording.keep("stream", result, skipped)
    recording.show(text.stream(result), recording.document(result), shared.json)
