"""Output of verbs: results on stdout, everything else on stderr."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.files import write_whole

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearfar.measure.progress import Progress


def print_result(text: RenderableType) -> None:
    """Print a table or a text on stdout, plain if stdout is not a terminal or NO_COLOR is set."""
    _print(text, aside=False)


def print_aside(text: RenderableType) -> None:
    """Print on stderr instead, for a verb whose stdout belongs to another program."""
    _print(text, aside=True)


def _print(text: RenderableType, *, aside: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, stderr=aside)
    if not console.is_terminal:
        console = Console(highlight=False, stderr=aside, width=100)
    # rich wraps text unless no_wrap is passed here too.
    console.print(
        text,
        soft_wrap=isinstance(text, Text) and bool(text.no_wrap),
        crop=console.is_terminal,
    )


def show(
    text: RenderableType,
    document: str,
    json_target: str | None,
    rows: Callable[[], str] | None = None,
) -> bool:
    """Write the documents that --json and --csv request; print text if none goes to stdout.

    ``rows`` returns the CSV of a result that has a table of its own. Returns whether text was
    printed.
    """
    has_room = write_documents(document, json_target, rows)
    if has_room:
        print_result(text)
    return has_room


class _Output:
    """State of the running verb.

    ``has_document``: whether a document was written to stdout, which holds at most one;
    ``csv_target``: the target of ``--csv``.
    """

    has_document = False
    csv_target: str | None = None


def begin() -> None:
    """Call before each verb of a process."""
    _Output.has_document = False
    _Output.csv_target = None


def request_csv(target: str) -> None:
    """Also write the result of the verb as CSV; ``-`` is stdout."""
    _Output.csv_target = target


@contextmanager
def kept_targets() -> Iterator[None]:
    """Keep the target of ``--csv`` of the running verb while flags of other verbs are checked."""
    target = _Output.csv_target
    try:
        yield
    finally:
        _Output.csv_target = target


def write_documents(
    document: str, json_target: str | None, rows: Callable[[], str] | None = None
) -> bool:
    """Write the JSON document of a result to the targets of ``--json`` and ``--csv``.

    ``rows``: as in ``show``. Returns whether stdout is free for text.
    """
    csv_target = _Output.csv_target
    if json_target is not None:
        write_json(json_target, document)
    if csv_target is not None:
        _write(csv_target, rows() if rows else _csv_of(document))
    return "-" not in (json_target, csv_target)


def _csv_of(document: str) -> str:
    from json import loads

    from nearfar.report.csv_tables import csv_of

    return csv_of(loads(document))


def write_refusal(what: str, next_step: str, exit_code: int) -> None:
    """Write the JSON document of an error to stdout, unless a result was already written there."""
    from json import dumps

    if not _Output.has_document:
        document = {"error": what, "next": next_step, "exit_code": int(exit_code)}
        write_json("-", dumps(document, indent=1))


def write_json(target: str, document: str) -> None:
    """Write one JSON document to a file, or to stdout for ``-``."""
    _write(target, document + "\n")


def _write(target: str, text: str) -> None:
    if target == "-":
        _Output.has_document = True
        sys.stdout.write(text)
        return
    write_whole(Path(target), text, "name another file, or - for stdout")


def note(text: str) -> None:
    """Print one line on stderr."""
    print(text, file=sys.stderr)


#: Numbers in the text of a step.
_NUMBERS = re.compile(r"\d[\d,.]*")
#: Work that ends before this time prints no progress to a file.
_FIRST_LINE_S = 2.0
#: Minimum time between two lines.
_STEP_S = 1.0
#: Minimum time between two lines that differ in numbers only.
_COUNT_S = 10.0


class _Lines:
    """Receiver of progress for logs and pipes: prints notes, and a line for each step."""

    def __init__(self) -> None:
        self._first_s = time.monotonic() + _FIRST_LINE_S
        self._printed_s = 0.0
        self._what = self._kind = ""

    def step(self, what: str, done: float) -> None:
        now = time.monotonic()
        kind = _NUMBERS.sub("#", what)
        pause_s = _COUNT_S if kind == self._kind else _STEP_S
        if what == self._what or now < max(self._first_s, self._printed_s + pause_s):
            return
        self._what, self._kind, self._printed_s = what, kind, now
        note(f"{min(done, 0.99):4.0%}  {what}")

    def note(self, text: str) -> None:
        note(text)


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Show a bar on a terminal, sparse lines elsewhere, nothing if quiet."""
    if quiet:
        from nearfar.measure.progress import silent

        with silent() as nothing:
            yield nothing
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    class Bar:
        def step(self, what: str, done: float) -> None:
            bar.update(task, description=what, completed=min(done, 0.99))

        def note(self, text: str) -> None:
            bar.console.print(text, highlight=False)

    columns = (
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.description}"),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield Bar()


def show_dry_run(
    verb: str, planned: dict[str, object], lines: Sequence[str], json_target: str | None
) -> None:
    """Print what a verb would do, as lines and, on request, as JSON."""
    import json

    if json_target is not None:
        write_json(json_target, json.dumps({"verb": verb, "dry_run": True, **planned}, indent=1))
    if json_target != "-":
        print("\n".join(lines))
