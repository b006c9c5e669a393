"""Documents as programs: the files they show are written, the commands they show are run.

A fenced block of ``console`` holds commands, each after ``$ ``, and lines that they printed. What
is shown must be printed again, in its order: quantities and spaces may differ, all else may not;
``...`` stands for lines that are left out, or for the rest of a line. A block of any other language
whose first line is a comment with the name of a file is that file. ``<!-- not run: reason -->``
before a block says why it is only read, ``<!-- long: reason -->`` why it is run with the long tests
alone, ``<!-- one run: reason -->`` why another run prints other lines: of what it shows, most lines
without quantities and verdicts must be printed again, wherever lines end then.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conftest import without_output_settings

_FENCE = re.compile(
    r"(?:<!-- (?P<mark>not run|long|one run): (?P<reason>[^>]*?) -->\n)?"
    r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_QUANTITY = re.compile(
    r"[-−+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?"
    r"(?:\s*(?:[nµm]?s|[KMGT]?i?B|[kMG]?B?/s|[pnµm]?J|×|%)(?![\w/]))?"
)
#: Quantities, and what a run says of the machine's state: of another run they are others.
_CHANGING = re.compile(
    r"\d|steady|disturbed|unusable|uncertain|noisy|provisional|idle|other programs", re.IGNORECASE
)
_NAME = re.compile(r"(?://|#|/\*|--) ?(?P<name>[\w./-]+\.\w+)")


@dataclass
class Command:
    """A command line, and the lines of output shown under it."""

    text: str
    shown: list[str] = field(default_factory=list)
    is_one_run: bool = False


@dataclass
class Document:
    """Parts of a document that the reader writes, runs, or only reads."""

    steps: list[tuple[str, str] | Command] = field(default_factory=list)  # (file name, text)
    not_run: list[str] = field(default_factory=list)  # reasons
    has_long: bool = False


def commands(block: str) -> list[Command]:
    """The commands of one block, with lines that end in a backslash joined."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif found and not found[-1].shown and found[-1].text.endswith("\\"):
            found[-1].text += "\n" + line
        elif line.strip() and found:
            found[-1].shown.append(line)
    return found


def read(path: Path, *, long: bool = True) -> Document:
    """Take a document apart; without ``long``, what takes minutes is not among its steps."""
    document = Document()
    for block in _FENCE.finditer(path.read_text()):
        document.has_long |= block["mark"] == "long"
        if block["mark"] == "not run" or (block["mark"] == "long" and not long):
            document.not_run.append(block["reason"])
        elif block["kind"] == "console":
            steps = commands(block["text"])
            for step in steps:
                step.is_one_run = block["mark"] == "one run"
            document.steps += steps
        elif name := _NAME.match(block["text"]):
            document.steps.append((name["name"], block["text"]))
    return document


def _shape(line: str) -> str:
    """A line without what may differ from run to run."""
    return " ".join(_QUANTITY.sub("#", line).split())


def missing(shown: list[str], printed: str) -> list[str]:
    """Lines that a document shows and the command did not print, in their order."""
    rest = iter([_shape(line) for line in printed.splitlines()])
    return [line for line in shown if line.strip() != "..." and not _found(_shape(line), rest)]


def missing_of_one_run(shown: list[str], printed: str) -> list[str]:
    """The same of the output of another run, which may lack a quarter of the lines."""
    text = _shape(printed)
    wanted = [line for line in shown if line.strip("· .") and not _CHANGING.search(line)]
    lacking = [line for line in wanted if _shape(line) not in text]
    return lacking if len(lacking) > len(wanted) // 4 else []


def _found(wanted: str, rest: Iterator[str]) -> bool:
    if wanted.endswith("..."):
        return any(line.startswith(wanted.removesuffix("...").rstrip()) for line in rest)
    return wanted in rest


def follow(step: Command, folder: Path, timeout: int, **environment: str) -> str:
    """Run a command, which must end well and print what is shown; returns what it printed."""
    done = subprocess.run(
        ["bash", "-c", step.text],
        cwd=folder,
        text=True,
        check=False,
        timeout=timeout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        # A compiler's cache of the user's may keep paths of other folders in what it compiled.
        env={
            **without_output_settings(),
            "COLUMNS": "100",
            "TERM": "dumb",
            "CCACHE_DISABLE": "1",
            **environment,
        },
    )
    assert done.returncode == 0, f"$ {step.text}\n{done.stdout}"
    lacking = (missing_of_one_run if step.is_one_run else missing)(step.shown, done.stdout)
    assert lacking == [], f"$ {step.text}\nlacks {lacking}\n{done.stdout}"
    return done.stdout
