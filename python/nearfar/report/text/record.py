"""A whole record in the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.run import NoiseRecord, Run
from nearfar.report.sections.machine import machine_name
from nearfar.report.text.results import bandwidth, latency, mapped, stream
from nearfar.report.verdict import noise_evidence, status_line


def noise(record: NoiseRecord | None) -> RenderableType:
    """The noise verdict with its reasons, or that there is none."""
    if record is None:
        return Text("No noise verdict: the run did not live to judge its figures.", style="yellow")
    if not record.noisy:
        return Text(f"Quiet machine. {noise_evidence(record)}", style="green")
    lines = [Text(f"  · {reason}", style="red") for reason in record.reasons]
    return Group(Text("Too noisy: do not trust these figures.", style="bold red"), *lines)


def record(run: Run) -> RenderableType:
    """Everything: head, verdict, sections, findings that need a hand, and what was skipped."""
    parts: list[RenderableType] = [_head(run), noise(run.noise)]
    sections = run.sections
    if sections.latency:
        parts += [Text(""), latency(sections.latency)]
    if sections.bandwidth:
        parts += [Text(""), bandwidth(sections.bandwidth)]
    if sections.stream:
        parts += [Text(""), stream(sections.stream)]
    if sections.mapped:
        parts += [Text(""), mapped(sections.mapped)]
    warnings = [f for f in run.findings if f.level == "warning"]
    if warnings:
        parts += [Text(""), Text("Doctor warns", style="bold")]
        parts += [Text(f"· {f.check}: {f.found}. {f.why}") for f in warnings]
    if run.skipped:
        parts += [Text(""), Text("Skipped", style="bold")]
        parts += [Text(f"· {s.section}: {s.what}: {s.why}") for s in run.skipped]
    return Group(*parts)


def _head(run: Run) -> Text:
    head = Text(f"nearfar {run.verb}", style="bold").append(
        f"  {run.started}  {machine_name(run.machine)}", style="not bold"
    )
    unfinished = status_line(run.status)
    return head.append(f"\n{unfinished}", style="bold red") if unfinished else head
