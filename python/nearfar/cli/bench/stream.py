"""``nearfar bench stream``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nearfar.cli import flags


class Accessor(StrEnum):
    """How the arrays are allocated."""

    MAPPED = "mapped"
    PMEMOBJ = "pmemobj"


@flags.grouped
def stream(
    tier: flags.OneTier = "dram",
    tier_a: Annotated[
        str | None, typer.Option("--tier-a", metavar="TIER", help="Tier of array a.")
    ] = None,
    tier_b: Annotated[
        str | None, typer.Option("--tier-b", metavar="TIER", help="Tier of array b.")
    ] = None,
    tier_c: Annotated[
        str | None, typer.Option("--tier-c", metavar="TIER", help="Tier of array c.")
    ] = None,
    threads: flags.Threads = None,
    size: flags.Size = None,
    reference_rules: Annotated[
        bool,
        typer.Option(
            "--reference-rules",
            help="Run ten iterations on one set of arrays; the first is not counted.",
        ),
    ] = False,
    accessor: Annotated[
        Accessor,
        typer.Option("--accessor", help="Arrays mapped from the tier, or objects of a pool on it."),
    ] = Accessor.MAPPED,
    *,
    shared: flags.Measuring,
) -> None:
    """Measure STREAM (copy, scale, add, triad) by number of threads.

    copy is c = a, scale b = s c, add c = a + b, triad a = b + s c. Each thread is pinned to its own
    CPU. Arrays are at least four times the effective last cache. Results are checked against the
    closed form. Bytes are counted as STREAM counts them: reads of lines that are about to be stored
    (write-allocate) are not counted, so that memory traffic is up to 1.5 times the rate shown.

    Examples:

        nearfar bench stream

        nearfar bench stream --tier shm: --threads 1 --threads 2 --json stream.json

        nearfar bench stream --tier shm: --accessor pmemobj

        nearfar bench stream --tier-a dram --tier-b numa:1 --size 512MiB
    """
    from dataclasses import replace

    from nearfar.measure import stream as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.workflows.plans import array_plan
    from nearfar.workflows.recording import recorded

    a, b, c = (tier if own is None else own for own in (tier_a, tier_b, tier_c))
    tiers = (a, b, c)
    budget_s = shared.budget_s(20.0)
    arguments = {
        "tiers": tiers,
        "time_s": budget_s,
        "reference_rules": reference_rules,
        "accessor": accessor.value,
    }
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
    recording.show(terminal.stream(result), recording.document(result), shared.json)
