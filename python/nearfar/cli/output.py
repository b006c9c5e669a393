"""Output of a finished verb: the result on stdout, notes on stderr, the verdict on noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearfar.errors import NoisyError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar.workflows.recording import Measured

#: Maximum number of printed reasons of a disturbance. The record and the report contain all.
MAX_REASONS = 3


@dataclass(frozen=True)
class Output:
    """Settings of the output of a result."""

    #: File for the JSON document; ``-`` is stdout.
    json: str | None = None
    #: Whether a disturbed run is an error.
    strict: bool = False
    #: Whether notes are suppressed.
    quiet: bool = False
    #: Whether the text of the result contains the verdict on noise already.
    says_verdict: bool = False
    #: Whether the text is for another program. Cautions about the figures are then notes on stderr.
    is_script: bool = False


def show_measured(done: Measured[Any], text: RenderableType, output: Output) -> None:
    """Print the result of a record, as text and as JSON if requested, and its verdict.

    Raises NoisyError under --strict if the run was disturbed, after it has shown the figures.
    """
    from rich.console import Group

    from nearfar.report.console import note, show
    from nearfar.report.terminal.record import cautions

    marked = [] if output.says_verdict else cautions(done.run)
    if output.is_script:
        show_notes([caution.plain for caution in marked])
        marked = []
    was_printed = show(Group(*marked, text) if marked else text, done.document(), output.json)
    if not output.quiet:
        note(f"record: {done.folder}")
    noise = done.run.noise
    if noise is None or not noise.noisy:
        return
    if output.strict:
        refuse_disturbed(noise.reasons)
    if not (was_printed or output.quiet):
        note(_complaint(noise.reasons))


def refuse_disturbed(reasons: Sequence[str]) -> None:
    """Raise NoisyError if there are reasons why the run was disturbed."""
    if reasons:
        raise NoisyError(
            _complaint(reasons), "stop what else runs (see `nearfar doctor`) and try again"
        )


def _complaint(reasons: Sequence[str]) -> str:
    more = len(reasons) - MAX_REASONS
    shown = [*reasons[:MAX_REASONS], *([f"and {more} more"] if more > 0 else [])]
    return f"disturbed: {'; '.join(shown)}"


def show_document(text: RenderableType, document: dict[str, Any], json: str | None) -> None:
    """Print a result as text, or write its JSON document."""
    from json import dumps

    from nearfar.report.console import show

    show(text, dumps(document, indent=1), json)


def show_notes(notes: list[str]) -> None:
    """Print notes on stderr."""
    from nearfar.report.console import note

    for each in notes:
        note(each)
