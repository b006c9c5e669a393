"""``nearfar study``: measure the machine and write a report."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags


def study(
    time: flags.Time = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Run the whole grids: up to half an hour instead of minutes."),
    ] = False,
    seed: flags.Seed = 1,
    out: flags.Out = None,
    json: flags.Json = None,
    strict: flags.Strict = False,
    dry_run: flags.DryRun = False,
    quiet: flags.Quiet = False,
) -> None:
    """Measure this machine's memory and write a report; start here.

    Finds the memory tiers, probes latency and bandwidth, runs STREAM, measures contention between
    near and far memory (an emulated far memory if there is none), and compares mmap with pread,
    pwrite and io_uring, in under three minutes. The record and its report.html are written to a new
    directory; a second study shows the changes since the previous one.

    Examples:

        nearfar study

        nearfar study --full --out before-upgrade

        nearfar study --json study.json --strict
    """
    from nearfar import store
    from nearfar.measure import latency
    from nearfar.measure.study import STUDY, Predictors, Study, StudyPlan, memory_tiers
    from nearfar.records.run import Sections, Skipped
    from nearfar.report import terminal
    from nearfar.report.console import note, show_dry_run
    from nearfar.report.html import page
    from nearfar.units import GIB, parse_seconds
    from nearfar.workflows.far_rows import predict_split
    from nearfar.workflows.forecasts import predict_compete, predict_pipeline
    from nearfar.workflows.recording import Kept, recorded
    from nearfar.workflows.structures_study import predict_structures

    time_s = parse_seconds(time) if time is not None else 1800.0 if full else 150.0
    if dry_run:
        planned = [{"section": name, "most_s": share * time_s} for name, share in STUDY.items()]
        lines = [f"{name}: at most {share * time_s:.0f} s" for name, share in STUDY.items()]
        show_dry_run("study", {"sections": planned}, lines, json)
        return
    arguments = {"time_s": time_s, "full": full}
    with recorded("study", arguments, Kept(seed, out, strict, quiet)) as recording:
        directory, run = recording.directory, recording.directory.run
        before = store.previous_runs("study", recording.machine.id, directory.path.parent)

        def save(sections: Sections, skipped: list[Skipped]) -> None:
            run.sections, run.skipped = sections, skipped
            directory.save()

        machine = recording.machine
        region = GIB if full else latency.default_region(machine.last_cache_bytes())
        cpus = machine.cores_first()
        plan = StudyPlan(
            memory_tiers(machine),
            STUDY,
            time_s,
            cpus,
            region,
            directory.path,
            range(1, len(cpus) + 1) if full else (),
            curve=full,
        )
        predictors = Predictors(
            predict_compete, predict_split, predict_pipeline, predict_structures
        )
        Study(recording.session, recording.machine, plan, save, predictors).run()
    report = page.write_report(directory.path, run, before)
    if not quiet:
        note(f"report: {report}")
    recording.show(terminal.record(run), run.model_dump_json(indent=1, exclude_none=True), json)
