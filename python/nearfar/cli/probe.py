"""``nearfar probe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags


@flags.grouped
def probe(
    context: typer.Context,
    tier: flags.OneTier = "dram",
    region: Annotated[
        str | None,
        typer.Option(
            "--region",
            metavar="SIZE",
            help="Largest region of the latency curve.",
            callback=flags.a_size,
        ),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="CSV", help="Published curve: find its knees, measure nothing."
        ),
    ] = None,
    threads: flags.Threads = None,
    size: flags.Size = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure coarsely, in under ten seconds.")
    ] = False,
    *,
    shared: flags.Measuring,
) -> None:
    """Probe one tier in depth, and write its device profile.

    Latency: dependent loads in random order over regions from 4 KiB to beyond the last cache, on 4
    KiB and on huge pages, which separates the cost of page walks; by block size; by percentile;
    under load. Memory-level parallelism: independent pointer chases on one thread. Bandwidth:
    reads, writes, non-temporal stores and copies by threads; mixes, orders, sizes and strides of
    independent accesses. Persistence cost: a fence and a flushed line, by instruction.

    The record includes profile.toml, which every verb accepts as a device profile.

    --from measures nothing: it finds the knees of a CSV file with columns region_bytes and
    latency_ns; with a column block_bytes, those of the smallest block. From a column ntwrite_ns (64
    B non-temporal stores) over several blocks it also finds the access unit of the medium.

    Examples:

        nearfar probe

        nearfar probe --tier shm: --region 1GiB

        nearfar probe --quick --json -

        nearfar probe --from curve.csv
    """
    if from_:
        from nearfar.cli._probe_from import refuse_other_flags, show_knees

        refuse_other_flags(context)
        show_knees(from_, shared.json)
        return
    from nearfar.measure.profile import profile_of
    from nearfar.measure.study import Study
    from nearfar.measure.tiers import check_region, check_tiers
    from nearfar.profiles.sheets import write_profile
    from nearfar.records.run import Sections, Skipped
    from nearfar.report import terminal
    from nearfar.units import parse_size
    from nearfar.workflows.plans import probe_plan
    from nearfar.workflows.recording import recorded

    check_tiers([tier])
    region_bytes = parse_size(region) if region is not None else None
    check_region(tier, region_bytes)
    budget_s = shared.budget_s(6.0 if quick else 45.0)
    arguments = {"tier": tier, "time_s": budget_s}
    with recorded("probe", arguments, shared.kept) as recording:
        run, directory = recording.directory.run, recording.directory

        def save(sections: Sections, skipped: list[Skipped]) -> None:
            run.sections, run.skipped = sections, skipped
            directory.save()

        plan = probe_plan(
            recording.machine,
            tier,
            budget_s,
            quick=quick,
            region_bytes=region_bytes,
            cpus=shared.cpus,
            threads=threads,
            size=size,
            runs=shared.runs,
            warmup=shared.warmup,
        )
        Study(recording.session, recording.machine, plan, save).run()
    write_profile(profile_of(run, directory.path.name, tier), directory.path / "profile.toml")
    recording.show(terminal.record(run), recording.document(run.sections), shared.json)
