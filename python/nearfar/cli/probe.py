"""``nearfar probe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import options


def probe(
    context: typer.Context,
    tier: options.OneTier = "dram",
    region: Annotated[
        str | None,
        typer.Option("--region", metavar="SIZE", help="Largest region of the latency curve."),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="CSV", help="Find the knees of a published curve instead."),
    ] = None,
    threads: options.Threads = None,
    cpus: options.Cpus = None,
    size: options.Size = None,
    time: options.Time = None,
    runs: options.Runs = None,
    warmup: options.Warmup = 0,
    seed: options.Seed = 1,
    out: options.Out = None,
    json: options.Json = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
) -> None:
    """Latency and bandwidth of one tier.

    Latency is that of dependent loads in a random order, over regions from 4 KiB to beyond the last
    cache, on 4 KiB and on huge pages, so that page walks are told apart. Bandwidth is that of
    reading, writing, writing past the caches (ntwrite) and copying, by number of threads. Knees
    are the largest regions before the latency rises: ends of caches, or of what a TLB reaches.

    With --from nothing is measured: the knees are those of a CSV file with columns region_bytes and
    latency_ns, and of the smallest block where it has a column block_bytes. A column ntwrite_ns,
    of 64 B stored past the caches, over several blocks tells the access unit of the medium.

    Examples:

        nearfar probe

        nearfar probe --tier shm: --region 1GiB

        nearfar probe --tier dram,pages=2m --threads 1 --json -

        nearfar probe --from curve.csv
    """
    if from_:
        from nearfar.cli.probe_from import refuse_other_flags, show_knees

        refuse_other_flags(context)
        show_knees(from_, json)
        return
    from rich.console import Group

    from nearfar.cli.plans import array_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure import bandwidth, latency
    from nearfar.measure.session import Effort
    from nearfar.measure.tiers import check_tiers
    from nearfar.records.results import ProbeResult
    from nearfar.report import text
    from nearfar.units import parse_seconds, parse_size

    check_tiers([tier])
    budget_s = parse_seconds(time) if time else 45.0
    region_bytes = parse_size(region) if region else None
    arguments = {"tier": tier, "time_s": budget_s, "region_bytes": region_bytes}
    with recorded("probe", arguments, seed=seed, out=out, quiet=quiet, strict=strict) as recording:
        plan, _ = array_plan(
            recording, bandwidth.KERNELS, (tier, tier, tier), threads=threads, cpus=cpus,
            size=size, runs=runs,
        )  # fmt: skip
        reported = recording.machine.last_cache_bytes()
        result, skipped = latency.measure_tiers(
            recording.session, [tier], plan.cpus[0],
            region_bytes or latency.default_region(reported), reported,
            Effort(budget_s * 0.65, runs, warmup),
        )  # fmt: skip
        recording.keep("latency", result, skipped)
        rates, lost = bandwidth.measure(
            recording.session, plan, Effort(budget_s * 0.35, runs, warmup),
            result.effective_last_cache_bytes,
        )  # fmt: skip
        recording.keep("bandwidth", rates, lost)
    both = ProbeResult(latency=result, bandwidth=rates)
    recording.show(
        Group(text.latency(result), text.bandwidth(rates)), recording.document(both), json
    )
