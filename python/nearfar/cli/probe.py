"""``nearfar probe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import options


@options.grouped
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
    size: options.Size = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A coarse look in under ten seconds.")
    ] = False,
    *,
    shared: options.Measuring,
) -> None:
    """Probe one tier in depth, and write its device profile.

    Latency: dependent loads in a random order over regions from 4 KiB to beyond the last cache, on
    4 KiB and on huge pages, so that page walks are told apart; by size of the blocks walked;
    by percentile; under load. Parallelism: chases side by side on one thread. Bandwidth: reading,
    writing, writing past the caches and copying by threads; mixes, orders, sizes and strides of
    independent accesses. Persistence: what a fence and a line cost, by instruction.

    The record holds profile.toml, which every verb takes where it takes a device profile.

    With --from nothing is measured: the knees are those of a CSV file with columns region_bytes and
    latency_ns, and of the smallest block where it has a column block_bytes. A column ntwrite_ns,
    of 64 B stored past the caches, over several blocks tells the access unit of the medium.

    Examples:

        nearfar probe

        nearfar probe --tier shm: --region 1GiB

        nearfar probe --quick --json -

        nearfar probe --from curve.csv
    """
    if from_:
        from nearfar.cli.probe_from import refuse_other_flags, show_knees

        refuse_other_flags(context)
        show_knees(from_, shared.json)
        return
    from nearfar.cli.plans import probe_plan
    from nearfar.cli.recording import recorded
    from nearfar.measure.profile import profile_of
    from nearfar.measure.study import Study
    from nearfar.measure.tiers import check_region, check_tiers
    from nearfar.profiles.sheets import write_profile
    from nearfar.records.run import Sections, Skipped
    from nearfar.report import text
    from nearfar.units import parse_size

    check_tiers([tier])
    region_bytes = parse_size(region) if region else None
    check_region(tier, region_bytes)
    budget_s = shared.budget_s(6.0 if quick else 45.0)
    arguments = {"tier": tier, "time_s": budget_s}
    with recorded("probe", arguments, shared.kept) as recording:
        run, directory = recording.directory.run, recording.directory

        def save(sections: Sections, skipped: list[Skipped]) -> None:
            run.sections, run.skipped = sections, skipped
            directory.save()

        plan = probe_plan(
            recording.machine, tier, budget_s, quick=quick, region_bytes=region_bytes,
            cpus=shared.cpus, threads=threads, size=size, runs=shared.runs, warmup=shared.warmup,
        )  # fmt: skip
        Study(recording.session, recording.machine, plan, save).run()
    write_profile(profile_of(run, directory.path.name, tier), directory.path / "profile.toml")
    recording.show(text.record(run), recording.document(run.sections), shared.json)
