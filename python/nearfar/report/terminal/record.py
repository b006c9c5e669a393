"""A whole record in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from nearfar.records.run import PREDICTED_SECTIONS, Run, Sections
from nearfar.report.html.sections.machine import machine_name
from nearfar.report.html.verdict import (
    NOTHING_TIMED,
    UNRELIABLE,
    Mark,
    mark_on,
    marks,
    marks_elsewhere,
    noise_evidence,
    reliance,
    status_line,
)
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
    "simulation": simulation.recorded,
    "simulated_counts": simulation.recorded,
    "load_curve": simulation.recorded,
    "placement": page_placement,
    "sweep": sweep,
}
#: Styles of verdicts.
TONE_STYLES = {"good": "green", "warn": "yellow", "bad": "red"}


def noise(run: Run) -> RenderableType:
    """Return the noise verdict with its reasons, or that there is none."""
    record = run.noise
    if record is None:
        return Text(
            "No noise verdict: the run ended before it could judge its figures.", style="yellow"
        )
    if record.series == 0:
        return Text(NOTHING_TIMED)
    if not record.noisy:
        return Text(f"Idle machine. {noise_evidence(record)}", style="green")
    if record.judged:
        return Group(*_reliance(run))
    lines = [Text(f"  · {reason}", style="red") for reason in record.reasons]
    return Group(Text(f"{UNRELIABLE}.", style="bold red"), *lines)


def _reliance(run: Run) -> Iterator[Text]:
    for each in reliance(run):
        style = TONE_STYLES[each.tone]
        yield Text(f"{each.title}: {', '.join(each.sections)}.", style=f"bold {style}")
        yield from (Text(f"  · {reason}", style=style) for reason in each.reasons)


def record(run: Run) -> RenderableType:
    """Return the whole record: head, verdict, sections, warnings, and what was skipped."""
    parts: list[RenderableType] = [head(run), noise(run)]
    for name, write in _SECTIONS.items():
        result = getattr(run.sections, name)
        if result is not None and not _has_run(run.sections, name):
            parts += [Text(""), *_caution(run, name), write(result)]
    warnings = [f for f in run.findings if f.level == "warning"]
    if warnings:
        parts += [Text(""), Text("Doctor warns", style="bold")]
        parts += [Text(f"· {f.check}: {f.found}. {f.why}") for f in warnings]
    if run.skipped:
        parts += [Text(""), Text("Skipped", style="bold")]
        parts += [Text(f"· {s.section}: {s.what}: {s.why}") for s in run.skipped]
    return Group(*parts)


def _caution(run: Run, name: str) -> Iterator[Text]:
    """Yield a line above a section whose figures cannot be relied on."""
    mark = mark_on(run, name)
    if mark is not None:
        yield _marked(mark)


def _marked(mark: Mark, what: str = "") -> Text:
    return Text(f"{what}{mark.line}", style=f"bold {TONE_STYLES[mark.tone]}")


def cautions(run: Run) -> list[Text]:
    """Return cautions to print above the figures of a run of one section, if it was disturbed."""
    # By line: a prediction and the section that tests it have the same mark.
    own = {mark.line: mark for mark in marks(run).values()}
    others = marks_elsewhere(run)
    return [
        *map(_marked, own.values()),
        *(_marked(mark, f"{name}: ") for name, mark in others.items()),
    ]


def _has_run(sections: Sections, prediction: str) -> bool:
    """Whether a section is a prediction whose run is in the record."""
    predicted = PREDICTED_SECTIONS.get(prediction)
    return predicted is not None and getattr(sections, predicted) is not None


def head(run: Run) -> Text:
    """Return the verb, the time and the machine, and how an unfinished run ended."""
    line = Text(f"nearfar {run.verb}", style="bold").append(
        f"  {run.started}  {machine_name(run.machine)}", style="not bold"
    )
    unfinished = status_line(run.status)
    return line.append(f"\n{unfinished}", style="bold red") if unfinished else line
