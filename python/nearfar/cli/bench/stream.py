"""``nearfar bench stream``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_measured
from nearfar.records.choices import Accessor

TierA = Annotated[str | None, flags.text("--tier-a", "TIER", "Tier of array a.")]
TierB = Annotated[str | None, flags.text("--tier-b", "TIER", "Tier of array b.")]
TierC = Annotated[str | None, flags.text("--tier-c", "TIER", "Tier of array c.")]
ReferenceRules = Annotated[
    bool,
    typer.Option(
        "--reference-rules",
        help="Run ten iterations on one set of arrays; the first is not counted.",
    ),
]
AccessorFlag = Annotated[
    Accessor,
    typer.Option("--accessor", help="Arrays mapped from the tier, or objects of a pool on it."),
]


@flags.expand_dataclasses
def stream(
    tier: flags.OneTier = "dram",
    tier_a: TierA = None,
    tier_b: TierB = None,
    tier_c: TierC = None,
    threads: flags.Threads = None,
    size: flags.Size = None,
    reference_rules: ReferenceRules = False,
    accessor: AccessorFlag = "mapped",
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
    from nearfar.report.terminal import results
    from nearfar.workflows.bench import stream as workflow

    a, b, c = (tier if own is None else own for own in (tier_a, tier_b, tier_c))
    done = workflow.measure(
        (a, b, c),
        shared.options,
        threads=threads or (),
        size=size,
        accessor=accessor,
        reference_rules=reference_rules,
    )
    show_measured(done, results.stream(done.result), shared.output)
