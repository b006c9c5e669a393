"""``nearfar study``: the main job."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import options


def study(
    time: options.Time = None,
    full: Annotated[
        bool, typer.Option("--full", help="Whole grids: up to half an hour instead of minutes.")
    ] = False,
    seed: options.Seed = 1,
    out: options.Out = None,
    json: options.Json = None,
    strict: options.Strict = False,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure this machine's memory and write a report: the main job.

    Finds the memory tiers, probes latency and bandwidth, runs STREAM, lets near and far memory work
    at once (an emulated far memory where there is none), and compares a mapped file with the
    classic calls, in under three minutes. The record and its report.html are written to a directory
    of their own; a second study shows what changed since the one before.

    Examples:

        nearfar study

        nearfar study --full --out before-upgrade

        nearfar study --json study.json --strict
    """
    from nearfar import store
    from nearfar.cli.console import note
    from nearfar.cli.far_rows import predict_split
    from nearfar.cli.forecasts import predict_compete, predict_pipeline
    from nearfar.cli.recording import recorded
    from nearfar.cli.structures_study import predict_structures
    from nearfar.measure import latency
    from nearfar.measure.study import STUDY, Predictors, Study, StudyPlan, memory_tiers
    from nearfar.records.run import Sections, Skipped
    from nearfar.report import page, text
    from nearfar.units import GIB, parse_seconds

    time_s = parse_seconds(time) if time else 1800.0 if full else 150.0
    if dry_run:
        for section, share in STUDY.items():
            print(f"{section}: at most {share * time_s:.0f} s")
        return
    arguments = {"time_s": time_s, "full": full}
    with recorded("study", arguments, options.Kept(seed, out, strict, quiet)) as recording:
        directory, run = recording.directory, recording.directory.run
        before = store.previous_runs("study", recording.machine.id, directory.path.parent)

        def save(sections: Sections, skipped: list[Skipped]) -> None:
            run.sections, run.skipped = sections, skipped
            directory.save()

        machine = recording.machine
        region = GIB if full else latency.default_region(machine.last_cache_bytes())
        cpus = machine.cores_first()
        plan = StudyPlan(
            memory_tiers(machine), STUDY, time_s, cpus, region, directory.path,
            range(1, len(cpus) + 1) if full else (), curve=full,
        )  # fmt: skip
        predictors = Predictors(
            predict_compete, predict_split, predict_pipeline, predict_structures
        )
        Study(recording.session, recording.machine, plan, save, predictors).run()
    report = page.write_report(directory.path, run, before)
    if not quiet:
        note(f"report: {report}")
    recording.show(text.record(run), run.model_dump_json(indent=1, exclude_none=True), json)
