"""Properties of the command line as a whole, and of every registered verb."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer.main
from syrupy.assertion import SnapshotAssertion

from conftest import RunNearfar, without_output_settings
from nearfar.cli.app import app
from nearfar.tracing.recording import HOW_TO_INSTRUMENT

HEAVY = {"highspy", "altair", "numpy", "nearfar._native", "nearfar.records.run", "vl_convert"}
#: The parameters of a verb make Typer itself import pydantic; the tool's own help has none.
HEAVY_FOR_THE_TOOL = HEAVY | {"pydantic"}


def commands() -> dict[tuple[str, ...], Any]:
    """Every verb and group as it is typed, from the application itself; () is the tool alone."""
    root = typer.main.get_command(app)
    found: dict[tuple[str, ...], Any] = {(): root}
    waiting: list[tuple[tuple[str, ...], Any]] = [((), root)]
    while waiting:
        typed, command = waiting.pop()
        for name, below in sorted(getattr(command, "commands", {}).items()):
            found[*typed, name] = below
            waiting.append(((*typed, name), below))
    return found


def verbs() -> list[tuple[str, ...]]:
    return list(commands())


def named(verb: tuple[str, ...]) -> str:
    return " ".join(("nearfar", *verb))


@pytest.mark.parametrize("verb", verbs(), ids=named)
def test_help(verb: tuple[str, ...], run_nearfar: RunNearfar, snapshot: SnapshotAssertion) -> None:
    done = run_nearfar(*verb, "--help")
    assert done.code == 0
    assert done.stderr == ""
    assert done.stdout == snapshot


@pytest.mark.parametrize("verb", verbs(), ids=named)
def test_help_answers_without_heavy_modules(verb: tuple[str, ...], tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from nearfar.cli.app import main\n"
        f"main({[*verb, '--help']!r})\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    unwanted = HEAVY if verb else HEAVY_FOR_THE_TOOL
    assert unwanted & set(done.stderr.split()) == set()


def test_a_refusal_imports_neither_records_nor_arrays(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from nearfar.cli.app import main\n"
        "code = main(['sim', 'absent'])\n"
        "print(code, *sorted(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    code, *modules = done.stdout.split()
    assert code == "2"
    assert not {"numpy", "polars", "nearfar.records.run"} & set(modules)


@pytest.mark.parametrize("verb", verbs(), ids=named)
def test_unknown_flag(verb: tuple[str, ...], run_nearfar: RunNearfar) -> None:
    done = run_nearfar(*verb, "--no-such-flag")
    done.assert_refused(2, "No such option")
    assert "--no-such-flag" in done.stderr
    assert f"next: {named(verb)} --help" in done.stderr


RECOMMENDED = re.compile(r"`nearfar ((?:[a-z][a-z-]* )+)[^`]*?(--(?!help)[a-z-]+)[^`]*`")


def recommended() -> list[tuple[str, str, str]]:
    """Every command with a flag that a string of the package recommends: file, verb, flag."""
    package = Path(__file__).parent.parent / "python" / "nearfar"
    return [
        (file.name, match[1].strip(), match[2])
        for file in sorted(package.rglob("*.py"))
        for match in RECOMMENDED.finditer(file.read_text())
    ]


def options_of(verb: tuple[str, ...]) -> list[str]:
    """The flags of a verb; `nearfar trace` without a verb of its own is `trace record`."""
    known = commands()
    while verb not in known:  # the last words are arguments
        verb = verb[:-1]
    command = known[("trace", "record") if verb == ("trace",) else verb]
    return [name for parameter in command.params for name in parameter.opts]


@pytest.mark.parametrize(("file", "verb", "flag"), recommended(), ids=str)
def test_a_recommended_command_has_the_flag(file: str, verb: str, flag: str) -> None:
    assert flag in options_of(tuple(verb.split()))


def test_the_instrumented_recorder_is_recommended_for_trace_only() -> None:
    """A message may be one of `advise`, which has no --recorder: it says so (defect 53)."""
    assert ("recording.py", "trace", "--recorder") in recommended()
    assert [
        file for file, verb, flag in recommended() if (verb, flag) == ("trace", "--recorder")
    ] == ["recording.py"]
    assert "`nearfar advise` does not support that recorder" in HOW_TO_INSTRUMENT
    assert "--recorder" not in options_of(("advise",))


def written_at_the_end() -> list[tuple[tuple[str, ...], str]]:
    """Every verb with each flag that names a file for its result."""
    return [
        (verb, name)
        for verb, command in commands().items()
        for parameter in command.params
        for name in parameter.opts
        if name in ("--json", "--csv", "--sarif")
    ]


@pytest.mark.parametrize(("verb", "flag"), written_at_the_end(), ids=str)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_done(
    verb: tuple[str, ...], flag: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    for file in ("missing/result", "folder"):
        done = run_nearfar(*verb, flag, file)
        done.assert_refused(3, f"cannot write {file}: ")
        assert f"cannot write {file}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_unknown_verb(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("fly")
    done.assert_refused(2, "No such command")
    assert "fly" in done.stderr


def test_no_verb_shows_help(run_nearfar: RunNearfar) -> None:
    done = run_nearfar()
    assert done.code == 2
    assert "Usage: nearfar" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_version(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("--version")
    assert (done.code, done.stdout, done.stderr) == (0, f"nearfar {version('nearfar')}\n", "")


def _help_on_a_terminal(env: dict[str, str]) -> bytes:
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be had here: {error}")
    process = subprocess.Popen(
        [sys.executable, "-m", "nearfar.cli.app", "--help"],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={**without_output_settings(), "TERM": "xterm-256color", **env},
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # the other end was closed
        pass
    os.close(ours)
    assert process.wait(timeout=600) == 0
    return shown


def test_color_on_a_terminal_unless_no_color() -> None:
    foreground = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|9[0-7])[;m]")
    assert foreground.search(_help_on_a_terminal({}))
    assert not foreground.search(_help_on_a_terminal({"NO_COLOR": "1"}))


def test_no_escape_sequences_in_a_pipe(run_nearfar: RunNearfar) -> None:
    assert "\x1b" not in run_nearfar("--help").stdout


def test_a_closed_pipe_prints_no_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "nearfar.cli.app", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    os.close(writer)
    assert "Traceback" not in done.stderr
