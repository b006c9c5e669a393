"""Wrong values for every flag and argument of every verb, by what the flag takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer.main

from nearfar.cli.app import app

#: Flags that each verb requires besides the wrong value, and those that keep it short if accepted.
#: Files: see ``make_files``.
_TIMED = ("--time", "1", "--runs", "1")
_PROGRAM = ("--", "true")
_REQUIRED: dict[str, tuple[str, ...]] = {
    "bench stencil": (*_TIMED, "--far-rows", "10"),
    "crash check": ("--structure", "list", "-n", "2"),
    "crash run": ("--checker", "true"),
    "fit contention": ("--out", "m.json"),
    "predict contention": ("--near-threads", "1", "--far-threads", "1"),
    "predict map-get": ("--far", "cxl-asic", "--host", "xeon-5218r", "--operations", "10"),
    "predict map-insert": ("--far", "cxl-asic", "--host", "xeon-5218r", "--operations", "10"),
    "predict map-remove": ("--far", "cxl-asic", "--host", "xeon-5218r", "--operations", "10"),
    "predict pipeline": (
        "--near-curve",
        "curve.csv",
        "--far-curve",
        "curve.csv",
        "--generate",
        "curve.csv",
        "--elements",
        "10",
        "--iterations",
        "10",
        "--threads",
        "4",
    ),
    "predict structure": ("--structure", "list", "--far", "cxl-asic", "--host", "xeon-5317"),
    "split": ("--contention", "m.json", "--host", "xeon-6130", "--rows", "10", "--cols", "10"),
    "trace export": ("--to", "champsim", "-o", "made"),
    "trace import": ("--from", "champsim", "-o", "made"),
    "trace record": ("-o", "made"),
    "study": ("--time", "1", "--dry-run"),
    "sim": ("--pattern", "random", "--requests", "10"),
    "advise": ("--time", "5"),
    "run": ("--tier", "far=dram"),
}
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "advise": _PROGRAM,
    "run": _PROGRAM,
    "trace record": _PROGRAM,
    "crash run": _PROGRAM,
    "crash lint": _PROGRAM,
    "compare": ("ddr4", "ddr5"),
    "show": ("cxl-asic",),
    "report": ("missing",),
    "sweep": ("missing.toml",),
    "crash replay": ("missing",),
    "fit contention": ("curve.csv",),
    "fit counters": ("curve.csv",),
    "predict contention": ("m.json",),
    "profile export": ("ddr4-3200",),
    "pool check": ("missing",),
    "pool info": ("missing",),
    "pool leaks": ("missing",),
    "pool shred": ("missing",),
    "trace export": ("missing",),
    "trace import": ("missing",),
    "trace show": ("missing",),
    "trace stats": ("missing",),
}

_FILES = (
    "missing",
    "folder",
    "binary",
    "empty",
    "zeros",
    "other.json",
    "pipe",
    "/dev/zero",
    "n" * 5000,
    "",
)
_NAMES = ("nonsense", "binary", "folder", "pipe", "")
_SIZES = ("much", "0", "-1", "99999999999999999999999G", "")
_TIERS = (
    "nonsense",
    "file:/nonexistent/x",
    "shm:/nonexistent",
    "numa:99999999999999999999",
    "numa:x",
    "paced:dram@nonsense",
    "paced:",
    "",
)
_TARGETS = ("missing/result", "folder", "")
_DIRECTORIES = ("taken", "/proc/nearfar", "taken/below", "")
_BY_METAVAR: dict[str, tuple[str, ...]] = {
    "SIZE": _SIZES,
    "TIME": ("soon", "0", "-1", "99999999h", "9" * 400, ""),
    "TIER": _TIERS,
    "NAME=TIER": ("nonsense", "far=", "=dram", *(f"far={tier}" for tier in _TIERS)),
    "PROFILE|TIER": _TIERS,
    "PROFILE": _NAMES,
    "HOST": _NAMES,
    "LIST": ("x", "99999999999999999999", "3-1", "4095", ""),
    "FILE|-": _TARGETS,
    "DIR": _DIRECTORIES,
    "NAME": ("nonsense", ""),
    "NAME,…": ("nonsense", ""),
    "TEST,…": ("nonsense", ""),
    "N,…": ("0", "x", "9" * 23, ""),
    "R|auto|FILE": ("-1", "9" * 23, *_FILES),
    "l1|l2": ("l9", ""),
    "SIZE/WAYS": ("x", "32KiB/0", f"32KiB/{'9' * 23}", "32KiB/x", ""),
    "RULE": ("nowhere", "near:page=x", "near:object=99999999999999999999999", ""),
    "WHERE": ("nowhere", "interleave:0:0", "binary", "interleave:x:y", ""),
    "SHARE": ("x", "-1", ""),
    "NAME|FILE": _FILES,
    "SUITE": ("missing.toml", "folder", "binary", "empty", "pipe", ""),
    "FILE|DIR": ("missing/file", "taken", "/proc/nearfar/x", ""),
    "ADDRESS": ("nonsense", ""),
    "CMD|LIB.so:FUNC": ("", "no-such-checker-program", "missing.so:check"),
    "PLAN": _FILES,
    "RECORD": _FILES,
    "RECORD|PROFILE|HOST": _FILES,
    "IMAGE": _FILES,
    "-- PROGRAM [ARGS]…": ("", "no-such-program", "./folder", "./empty", "./binary", "./pipe"),
    "-- PROGRAM ARGS": ("", "no-such-program", "./folder", "./empty", "./binary", "./pipe"),
}
#: Flags whose metavar says FILE or the like and which name a file that is written.
_WRITTEN = frozenset({"csv", "picture", "output", "out", "trace"})
#: Not wrong: an empty path is the current directory.
_ACCEPTED = frozenset({("bench mapped", "path", "")})


@dataclass(frozen=True)
class Case:
    """One wrong command line."""

    verb: str
    arguments: tuple[str, ...]
    #: Whether the refusal is to be a document on standard output too.
    json: bool = False

    def as_json(self) -> Case:
        """The same with ``--json -``, after the words of the verb."""
        words = self.verb.count(" ") + 1
        return Case(
            self.verb, (*self.arguments[:words], "--json", "-", *self.arguments[words:]), json=True
        )

    def __str__(self) -> str:
        return " ".join(argument[:40] or "''" for argument in self.arguments)


def verbs() -> dict[str, Any]:
    """Every verb as it is typed, from the application itself."""
    return dict(_below(typer.main.get_command(app), ()))


def _below(command: Any, typed: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield " ".join(typed), command
    for name, child in sorted(children.items()):
        yield from _below(child, (*typed, name))


def cases(verb: str, command: Any) -> Iterator[Case]:
    """Each parameter of a verb with each wrong value of its kind."""
    yield Case(verb, (*verb.split(), "--no-such-flag"))
    for parameter in command.params:
        for value in wrong_values(parameter):
            if (verb, parameter.name, value) not in _ACCEPTED:
                yield Case(verb, _typed(verb, parameter, value))


def _typed(verb: str, parameter: Any, value: str) -> tuple[str, ...]:
    start = (*verb.split(), *_REQUIRED.get(verb, _TIMED if verb.startswith("bench") else ()))
    if parameter.param_type_name == "argument":
        return (*start, "--", value)
    return (*start, parameter.opts[0], value, *_ARGUMENTS.get(verb, ()))


def wrong_values(parameter: Any) -> tuple[str, ...]:
    """Values that a flag or argument of this kind must refuse."""
    if parameter.name == "help" or getattr(parameter, "is_flag", False):
        return ()
    if is_number(parameter):
        return (str(parameter.min - 1), f"{parameter.max + 1:.0f}", "9" * 23, "many", "nan", "")
    if parameter.metavar is None:  # one of several words
        return ("nonsense", "")
    if parameter.metavar in _BY_METAVAR:
        return _BY_METAVAR[parameter.metavar]
    return _TARGETS if parameter.name in _WRITTEN else _FILES


def is_number(parameter: Any) -> bool:
    """Whether it takes a whole number or a fraction."""
    annotation = parameter.type_descriptor.annotation
    return annotation in (int, float, list[int], list[float]) or parameter.min is not None
