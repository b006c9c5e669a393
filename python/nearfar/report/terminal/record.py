"""A whole record in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.noise import NoiseRecord, Reliability
from nearfar.records.run import Run, Sections
from nearfar.report.html.sections.machine import machine_name
from nearfar.report.html.verdict import NOTHING_TIMED, noise_evidence, reliance, status_line
from nearfar.report.terminal import (
    advising,
    allocators,
    depth,
    persistent_structures,
    programs,
    results,
    simulation,
    together,
)
from nearfar.report.terminal.experiment import experiment
from nearfar.report.terminal.page_placement import page_placement
from nearfar.report.terminal.sweep import sweep

#: Sections in the order of the report.
_SECTIONS: dict[str, Callable[[Any], RenderableType]] = {
    "advice": advising.advice,
    "latency": results.latency,
    "blocks": depth.blocks,
    "tails": depth.tails,
    "parallelism": depth.parallelism,
    "loaded": depth.loaded,
    "matrix": depth.matrix,
    "bandwidth": results.bandwidth,
    "access": depth.access,
    "stream": results.stream,
    "persistence": depth.persistence,
    "mapped": results.mapped,
    "map": persistent_structures.map_run,
    "intset": persistent_structures.intset,
    "structures": persistent_structures.predicted_structures,
    "compete": together.compete,
    "compete_forecast": together.compete_forecast,
    "stencil": together.stencil,
    "stencil_split": together.stencil_split,
    "pipeline": together.pipeline_run,
    "pipeline_forecast": together.pipeline_forecast,
    "malloc": allocators.malloc,
    "program": programs.program,
    "experiment": experiment,
    "simulation": simulation.simulation,
    "simulated_counts": simulation.counts,
    "load_curve": simulation.load_curve,
    "placement": page_placement,
    "sweep": sweep,
}
#: Styles of verdicts.
TONE_STYLES = {"good": "green", "warn": "yellow", "bad": "red"}
#: Sections with a prediction, and the section of the run that tested it and shows it, too.
_PREDICTED_SECTIONS = {
    "compete_forecast": "compete",
    "stencil_split": "stencil",
    "pipeline_forecast": "pipeline",
}


def noise(record: NoiseRecord | None) -> RenderableType:
    """Return the noise verdict with its reasons, or that there is none."""
    if record is None:
        return Text(
            "No noise verdict: the run ended before it could judge its figures.", style="yellow"
        )
    if record.series == 0:
        return Text(NOTHING_TIMED)
    if not record.noisy:
        return Text(f"Idle machine. {noise_evidence(record)}", style="green")
    if record.judged:
        return Group(*_reliance(record))
    lines = [Text(f"  · {reason}", style="red") for reason in record.reasons]
    return Group(Text("Disturbed: do not rely on these figures.", style="bold red"), *lines)


def _reliance(record: NoiseRecord) -> Iterator[Text]:
    for each in reliance(record):
        style = TONE_STYLES[each.tone]
        yield Text(f"{each.title}: {', '.join(each.sections)}.", style=f"bold {style}")
        yield from (Text(f"  · {reason}", style=style) for reason in each.reasons)


def record(run: Run) -> RenderableType:
    """Return the whole record: head, verdict, sections, warnings, and what was skipped."""
    parts: list[RenderableType] = [head(run), noise(run.noise)]
    for name, write in _SECTIONS.items():
        result = getattr(run.sections, name)
        if result is not None and not _has_run(run.sections, name):
            parts += [Text(""), *_caution(run.noise, name), write(result)]
    warnings = [f for f in run.findings if f.level == "warning"]
    if warnings:
        parts += [Text(""), Text("Doctor warns", style="bold")]
        parts += [Text(f"· {f.check}: {f.found}. {f.why}") for f in warnings]
    if run.skipped:
        parts += [Text(""), Text("Skipped", style="bold")]
        parts += [Text(f"· {s.section}: {s.what}: {s.why}") for s in run.skipped]
    return Group(*parts)


def _caution(record: NoiseRecord | None, name: str) -> Iterator[Text]:
    """Yield a line above a section whose figures cannot be relied on."""
    verdict, _ = (record.by_section() if record else {}).get(name, (Reliability.STEADY, []))
    if verdict is Reliability.UNUSABLE:
        yield Text("Unusable: measure again; do not rely on these figures.", style="bold red")


def _has_run(sections: Sections, prediction: str) -> bool:
    """Whether a section is a prediction whose run is in the record."""
    predicted = _PREDICTED_SECTIONS.get(prediction)
    return predicted is not None and getattr(sections, predicted) is not None


def head(run: Run) -> Text:
    """Return the verb, the time and the machine, and how an unfinished run ended."""
    line = Text(f"nearfar {run.verb}", style="bold").append(
        f"  {run.started}  {machine_name(run.machine)}", style="not bold"
    )
    unfinished = status_line(run.status)
    return line.append(f"\n{unfinished}", style="bold red") if unfinished else line
