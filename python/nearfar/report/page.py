"""The page: one self-contained HTML file that needs no network and runs no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.files import write_whole
from nearfar.records.run import Run
from nearfar.report.glance import cards
from nearfar.report.section import Context
from nearfar.report.sections import ORDER
from nearfar.report.sections.machine import machine_name
from nearfar.report.verdict import NOTHING_TIMED, noise_evidence, status_line
from nearfar.report.wording import when

FILE_NAME = "report.html"


@dataclass(frozen=True)
class Banner:
    """What a reader must know before any figure; ``tone`` is ``bad`` or ``good``."""

    tone: str
    title: str
    lines: Sequence[str] = ()


def write_report(directory: Path, run: Run, previous: Sequence[tuple[Path, Run]] = ()) -> Path:
    """Write DIR/report.html from a run and earlier runs of the same machine; returns its path.

    Raises MachineError where it cannot be written.
    """
    return write_page(directory / FILE_NAME, run, previous)


def write_page(file: Path, run: Run, previous: Sequence[tuple[Path, Run]] = ()) -> Path:
    """As write_report, to any file; what was there before is replaced whole or not at all."""
    write_whole(
        file,
        render(run, previous),
        "name a file you may write to: nearfar report RECORD --out FILE",
    )
    return file


def render(run: Run, previous: Sequence[tuple[Path, Run]] = ()) -> str:
    """The page as text. All text of the record is escaped, here or by vl-convert."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nearfar.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    context = Context(run, [pair for pair in previous if pair[1].started < run.started])
    sections = [section for make in ORDER if (section := make(context)) is not None]
    return environment.get_template("page.html.j2").render(
        run=run, started=when(run.started), machine_name=machine_name(run.machine),
        cards=cards(run), banners=list(_banners(run)), sections=sections,
    )  # fmt: skip


def _banners(run: Run) -> Iterator[Banner]:
    unfinished = status_line(run.status)
    if unfinished:
        title, _, rest = unfinished.partition(": ")
        yield Banner("bad", title, [rest.capitalize()])
    if run.noise is None:
        yield Banner("bad", "No noise verdict", ["The run did not live to judge its own figures."])
    elif run.noise.noisy:
        yield Banner("bad", "Too noisy: do not trust these figures", run.noise.reasons)
    elif run.noise.series == 0:
        title, _, rest = NOTHING_TIMED.partition(": ")
        yield Banner("good", title, [rest.capitalize()])
    else:
        yield Banner("good", "Quiet machine", [noise_evidence(run.noise)])
