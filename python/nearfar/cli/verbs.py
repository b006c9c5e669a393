"""The verbs as data: which there are, what their flags are called, what values they take."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError
from nearfar.profiles import THIS

if TYPE_CHECKING:
    from nearfar.sweep.suite import Cell, Value

#: Verbs that time something and keep no record of it, nor a verdict on its noise.
_TIMES_SOMETHING = frozenset({"predict structure", "run"})
#: Verbs that keep a record with one flag alone.
_RECORDS_WITH = {"sim": "suite"}
#: Flags that who runs a verb for others sets itself.
_TAKEN = frozenset({"json", "out", "quiet", "q", "strict", "csv", "help"})


@dataclass(frozen=True)
class Verb:
    """One verb of the command line."""

    name: str
    command: Any

    def measures(self, values: Mapping[str, Value]) -> bool:
        """Whether it times something, so that nothing else may run beside it.

        Predictions for a host measure it where that is this machine, on ``--cpus``.
        """
        known = self._parameters()
        judged = "strict" in known and self.records(values)
        own_host = "cpus" in known and values.get("host") == THIS
        return judged or own_host or self.name in _TIMES_SOMETHING

    def records(self, values: Mapping[str, Value]) -> bool:
        """Whether it writes a record where ``--out`` says."""
        out = self._parameters().get("out")
        needs = _RECORDS_WITH.get(self.name)
        return out is not None and out.metavar == "DIR" and (needs is None or needs in values)

    def arguments(self, values: Mapping[str, Value]) -> list[str]:
        """Values by flag as they would be typed. Raises BadInputError that names the key."""
        flags: list[str] = []
        words: list[str] = []
        for key, value in values.items():
            parameter = self._named(key)
            given = value if isinstance(value, list) else [value]
            if parameter.param_type_name == "argument":
                words += map(str, given)
            elif parameter.is_flag:
                flags += self._switch(key, value, parameter)
            else:
                flags += [part for each in given for part in (parameter.opts[0], _typed(key, each))]
        return [*flags, *(["--", *words] if words else [])]

    def check(self, arguments: list[str]) -> None:
        """Have the command line read them, and run nothing. Raises BadInputError."""
        from typer.exceptions import TyperException

        try:
            self.command.make_context(f"nearfar {self.name}", list(arguments))
        except TyperException as error:
            raise BadInputError(
                f"nearfar {self.name}: {error.format_message()}", f"nearfar {self.name} --help"
            ) from None

    def _parameters(self) -> dict[str, Any]:
        return {parameter.name: parameter for parameter in self.command.params}

    def _named(self, key: str) -> Any:
        """The parameter of a key: a flag without its dashes, or an argument."""
        known: dict[str, Any] = {}
        for parameter in self.command.params:
            is_word = parameter.param_type_name == "argument"
            for name in [parameter.name] if is_word else parameter.opts:
                known[name.lstrip("-")] = parameter
        if key in _TAKEN:
            raise BadInputError(f"{key} is set by the sweep itself", f"remove {key}")
        if key not in known:
            near = difflib.get_close_matches(key, known.keys() - _TAKEN, n=1)
            raise BadInputError(
                f"nearfar {self.name} has no flag {key}",
                f"did you mean {near[0]}?" if near else f"nearfar {self.name} --help",
            )
        return known[key]

    @staticmethod
    def _switch(key: str, value: Value, parameter: Any) -> list[str]:
        if not isinstance(value, bool):
            raise BadInputError(f"{key} is a flag without a value", f"write {key} = true")
        return [parameter.opts[0]] if value else []


def _typed(key: str, value: object) -> str:
    if isinstance(value, bool):
        raise BadInputError(f"{key} wants a value, not {str(value).lower()}", f"give {key} a value")
    return str(value)


@cache  # Typer builds the commands of all verbs to find one, and a grid asks once a cell
def find_verb(name: str) -> Verb:
    """A verb that gives a result as JSON. Raises BadInputError for any other name."""
    import typer.main

    from nearfar.cli.main import app

    command: Any = typer.main.get_command(app)
    for word in name.split() or [""]:
        known = getattr(command, "commands", {})
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            raise BadInputError(
                f"there is no verb '{name}'",
                f"did you mean {near[0]}?" if near else "nearfar --help lists them",
            )
        command = known[word]
    verb = Verb(name, command)
    if getattr(command, "commands", None):
        raise BadInputError(f"'{name}' is a group of verbs", f"nearfar {name} --help lists them")
    if not any(parameter.name == "json" for parameter in command.params) or name == "sweep":
        raise BadInputError(f"'{name}' gives no result to collect", "name a verb with --json")
    return verb


def order_arguments(cell: Cell) -> tuple[Verb, list[str]]:
    """The verb of a cell and its arguments, found good by the command line itself."""
    try:
        verb = find_verb(cell.verb)
        arguments = verb.arguments(cell.values)
        verb.check(arguments)
    except BadInputError as error:
        raise BadInputError(f"{cell.where}: {error.what}", error.next_step) from None
    return verb, arguments
