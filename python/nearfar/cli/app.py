"""The executable: all verbs, and the exit code of a run.

Verb modules import only Typer and small modules (flags, output, choices, units) at the top, and
the rest inside the verb, so that ``nearfar --help`` starts fast.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from functools import cache, partial
from types import FrameType
from typing import Any

import typer
import typer.main

from nearfar import __version__
from nearfar.cli import (
    advise,
    bench,
    compare,
    config,
    crash,
    doctor,
    errors,
    fit,
    place,
    pool,
    predict,
    probe,
    profile,
    renamed,
    report,
    run,
    show,
    sim,
    streams,
    study,
    sweep,
    topo,
    trace,
)
from nearfar.cli.predict import split
from nearfar.cli.verb_group import Verbs
from nearfar.errors import ExitCode
from nearfar.report import console

app = Verbs(
    name="nearfar",
    help="Measure, model, program and place data on computers with near and far memory.",
    epilog="Start with `nearfar study`: it measures this machine and writes a report.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(study.study)
app.command()(topo.topo)
app.command()(doctor.doctor)
app.command()(probe.probe)
app.command()(report.report)
app.command()(show.show)
app.command()(compare.compare)
app.command()(sweep.sweep)
app.add_typer(bench.group, name="bench")
app.add_typer(fit.group, name="fit")
app.add_typer(predict.group, name="predict")
app.add_typer(crash.group, name="crash")
app.command("split", hidden=True)(split.old_name)
app.add_typer(profile.group, name="profile")
app.add_typer(pool.group, name="pool")
app.add_typer(trace.group, name="trace")
app.command()(sim.sim)
app.command()(place.place)
app.command()(config.config)
for program_verb in (advise.advise, run.run):
    app.command(context_settings={"allow_interspersed_args": False})(program_verb)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"nearfar {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    pass


@cache
def _commands() -> Any:
    """All verbs, made once."""
    return typer.main.get_command(app)


def _run(arguments: list[str] | None) -> Any:
    """Return the verb's result. Typer turns Ctrl-C into an exit code; this raises it again."""
    interrupted: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        interrupted.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup ignores it
        signal.signal(signal.SIGHUP, interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    words = _with_new_names(arguments)
    result = _commands()(words, prog_name="nearfar", standalone_mode=False)
    if interrupted and result == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def _with_new_names(arguments: list[str] | None) -> list[str]:
    """Return the arguments with today's names of flags, after a note for each old name."""
    words, notes = renamed.with_new_names(sys.argv[1:] if arguments is None else arguments)
    for note in notes:
        print(note, file=sys.stderr)
    return words


def _flush() -> int:
    sys.stdout.flush()
    return ExitCode.OK


def _typed_verb(arguments: Sequence[str]) -> str:
    """Return the verb that the arguments begin with, as typed."""
    command = _commands()
    path = "nearfar"
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path += f" {word}"
    return path


def _wants_document(arguments: Sequence[str]) -> bool:
    """Whether a verb's own ``--json -`` is among the arguments.

    Follows the words as Click parses them, but reads on after an error: a flag that takes a value
    skips the next word, and the words of a program that the verb starts do not count.
    """
    command = _commands()
    words = iter(arguments)
    for word in words:
        flag, _, value = word.partition("=")
        takes = {name: not getattr(p, "is_flag", False) for p in command.params for name in p.opts}
        if word == "--":
            return False
        if not value and (flag == "--json" or takes.get(flag)):
            value = next(words, "")
        if flag == "--json" and value == "-":
            return True
        if not word.startswith("-"):
            below = getattr(command, "commands", None)
            if below is None and not command.context_settings.get("allow_interspersed_args", True):
                return False
            command = (below or {}).get(word, command)
    return False


def main(arguments: list[str] | None = None) -> int:
    """Run one verb. Return its exit code (docs/reference/contract.md); never raise on expected
    failures."""
    typed = sys.argv[1:] if arguments is None else arguments
    verb, wants_document = partial(_typed_verb, typed), partial(_wants_document, typed)
    console.begin()
    with streams.guarded():
        code = errors.exit_code_of(lambda: int(_run(arguments) or 0), verb, wants_document)
        flushed = errors.exit_code_of(_flush, verb)
        return flushed or code  # a result that could not be written is a failure


if __name__ == "__main__":
    sys.exit(main())
