"""The page: one self-contained HTML file that requires no network and runs no script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.extras import how_to_install
from nearfar.files import write_whole
from nearfar.records.run import PREDICTED_SECTIONS, Run
from nearfar.report.html.answers import on_far_memory, what_next
from nearfar.report.html.glance import cards
from nearfar.report.html.section import Context, Section
from nearfar.report.html.sections import all_sections
from nearfar.report.html.sections.machine import machine_name
from nearfar.report.html.topics import topics
from nearfar.report.html.verdict import (
    NOTHING_TIMED,
    UNRELIABLE,
    Mark,
    Reliance,
    marks,
    noise_evidence,
    reliance,
    status_line,
)
from nearfar.report.wording import sentence, when

FILE_NAME = "report.html"


@dataclass(frozen=True)
class Banner:
    """A message above all figures; ``tone`` is ``bad``, ``warn`` or ``good``."""

    tone: str
    title: str
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Against:
    """The run that was named to compare a record with, which need not be an earlier one."""

    record: Path
    base: Path
    run: Run

    def heads(self) -> tuple[str, str]:
        """Names of both records, with their folders if these distinguish them."""
        base, record = self.base.resolve(), self.record.resolve()
        return (str(base), str(record)) if base.name == record.name else (base.name, record.name)


def write_report(directory: Path, run: Run, previous: Sequence[tuple[Path, Run]] = ()) -> Path:
    """Write DIR/report.html from a run and earlier runs of the same machine; returns its path.

    Raises MachineError if it cannot be written.
    """
    return write_page(directory / FILE_NAME, run, previous)


def write_page(
    file: Path,
    run: Run,
    previous: Sequence[tuple[Path, Run]] = (),
    against: Against | None = None,
) -> Path:
    """As write_report, to any file; an existing file is replaced atomically.

    ``against``: instead of the latest of the earlier runs.
    """
    write_whole(
        file,
        render(run, previous, against),
        "name a writable file: nearfar report RECORD --out FILE",
    )
    return file


def render(
    run: Run,
    previous: Sequence[tuple[Path, Run]] = (),
    against: Against | None = None,
) -> str:
    """Return the page. All text of the record is escaped, here or by vl-convert."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nearfar.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    context = Context(run, _earlier(run, previous))
    if against is not None:
        context = Context(run, [(against.base, against.run)], against.heads())
    sections = [section for make in all_sections() if (section := make(context)) is not None]
    return environment.get_template("page.html.j2").render(
        run=run,
        started=when(run.started),
        machine_name=machine_name(run.machine),
        title=subject(run) or machine_name(run.machine),
        cards=cards(run),
        marks=_marks(run),
        banners=list(_banners(run)),
        verdicts=list(_verdicts(run)),
        on_far_memory=on_far_memory(run),
        what_next=what_next(run),
        topics=topics(run, sections),
        without_charts=_without_charts(sections),
    )


def _earlier(run: Run, previous: Sequence[tuple[Path, Run]]) -> list[tuple[Path, Run]]:
    """Return the runs that started before ``run`` and have the same subject."""
    return [
        pair for pair in previous if pair[1].started < run.started and same_subject(pair[1], run)
    ]


def _without_charts(sections: Sequence[Section]) -> str:
    """Return how to install the charts if any is missing; otherwise an empty text."""
    if all(figure.wide for section in sections for figure in section.figures):
        return ""
    return how_to_install("charts")


#: The arguments that name the subject of a run, if its subject is not the machine.
_SUBJECTS = ("program", "suite", "trace", "pattern", "counts")


def same_subject(one: Run, other: Run) -> bool:
    """Whether two runs of a verb are about the same program, suite or stream of requests."""
    return all(one.arguments.get(key) == other.arguments.get(key) for key in _SUBJECTS)


def subject(run: Run) -> str:
    """The command line of a program, or the process, that a run is about; empty for a run about the
    machine."""
    advice = run.sections.advice
    if advice is not None and advice.pid is not None:
        return " ".join(advice.program)
    program = run.arguments.get("program")
    return shlex.join(map(str, program)) if isinstance(program, list) else ""


def _banners(run: Run) -> Iterator[Banner]:
    """Yield what a reader must know before any figure."""
    unfinished = status_line(run.status)
    if unfinished:
        title, _, rest = unfinished.partition(": ")
        yield Banner("bad", title, [sentence(rest)])
    if run.noise is None:
        yield Banner("bad", "No noise verdict", ["The run ended before the verdict."])
    elif run.noise.noisy and not run.noise.judged:
        yield Banner("bad", UNRELIABLE, run.noise.reasons)


def _verdicts(run: Run) -> Iterator[Banner]:
    """Yield which figures can be relied on."""
    noise = run.noise
    if noise is None:
        return
    if noise.series == 0:
        title, _, rest = NOTHING_TIMED.partition(": ")
        yield Banner("good", title, [sentence(rest)])
    elif not noise.noisy:
        yield Banner("good", "Idle machine", [noise_evidence(noise)])
    for each in reliance(run) if noise.noisy else ():
        yield Banner(each.tone, each.title, [*_unexplained(each), *each.reasons])


def _unexplained(each: Reliance) -> list[str]:
    """Return the sections that no reason names, in a sentence."""
    named = {reason.partition(":")[0] for reason in each.reasons}
    rest = [name for name in each.sections if name not in named]
    return [sentence(f"{', '.join(rest)}.")] if rest else []


def _marks(run: Run) -> dict[str, Mark]:
    """Return the marks of sections by their names on the page: a prediction has that of the section
    which tests it."""
    return {PREDICTED_SECTIONS.get(name, name): mark for name, mark in marks(run).items()}
