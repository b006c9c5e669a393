"""``nearfar study``: measure the machine and write a report."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import Output, show_measured

Full = Annotated[
    bool, typer.Option("--full", help="Run the whole grids: up to half an hour instead of minutes.")
]


def study(
    time: flags.Time = None,
    full: Full = False,
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
    pwrite and io_uring, in under three minutes. In between it measures what other verbs need to
    know of this machine, and keeps that as the host `this`. The record and its report.html are
    written to a new directory; a second study shows the changes since the previous one.

    The terminal shows the headline figures, the verdict on each section, and what to do next;
    `nearfar show RECORD` prints all tables.

    Examples:

        nearfar study

        nearfar study --full --out before-upgrade

        nearfar study --json study.json --strict
    """
    from nearfar import api
    from nearfar.report.console import note
    from nearfar.report.terminal import summary
    from nearfar.store import require_new

    options = flags.options(seed, time, out, quiet=quiet)
    if dry_run:
        require_new(options.out)
        _show_plan(options.time_s, full, json)
        return
    done = api.study(options, full=full)
    if not quiet:
        note(f"report: {done.report}")
    text = summary.summary(done.run, done.folder)
    show_measured(done, text, Output(json, strict, quiet, says_verdict=True))


def _show_plan(time_s: float | None, full: bool, json: str | None) -> None:
    from nearfar.report.console import show_dry_run
    from nearfar.workflows.study import planned_s

    times = planned_s(time_s, full=full)
    planned = [{"section": name, "max_s": section_s} for name, section_s in times.items()]
    lines = [f"{name}: {section_s:.0f} s" for name, section_s in times.items()]
    show_dry_run("study", {"sections": planned}, lines, json)
