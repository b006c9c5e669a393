"""The verbs as data: their names, flags and accepted values."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearfar.cli.flags import CHECK_ONLY
from nearfar.cli.renamed import RENAMED
from nearfar.errors import BadInputError
from nearfar.profiles import THIS
from nearfar.report.console import kept_targets
from nearfar.sweep.running import TABLE

if TYPE_CHECKING:
    from nearfar.sweep.suite import Cell, Value

#: Verbs that time something but write no record and give no verdict on its noise.
_TIMES_SOMETHING = frozenset({"predict structure", "run"})
#: Verbs that write a record only with one flag.
_RECORDS_WITH = {"sim": "experiment"}
#: Verbs that can check their combination of flags without running.
_CHECKED = frozenset({"sim"})
#: Flags that the caller of a verb, such as a sweep, sets itself.
_TAKEN = frozenset({"json", "out", "quiet", "q", "strict", "help"})


@dataclass(frozen=True)
class Verb:
    """One verb of the command line."""

    name: str
    command: Any

    def measures(self, values: Mapping[str, Value]) -> bool:
        """Whether it times something, so that nothing else may run concurrently.

        A prediction for the host ``this`` also measures: this machine, on the CPUs of ``--cpus``.
        """
        known = self._parameters()
        judged = "strict" in known and self.records(values)
        own_host = "cpus" in known and values.get("host") == THIS
        return judged or own_host or self.name in _TIMES_SOMETHING

    def records(self, values: Mapping[str, Value]) -> bool:
        """Whether it writes a record to the directory of ``--out``."""
        out = self._parameters().get("out")
        needs = _RECORDS_WITH.get(self.name)
        given = {self._named(key).name for key in values}
        return out is not None and out.metavar == "DIR" and (needs is None or needs in given)

    def arguments(self, values: Mapping[str, Value]) -> list[str]:
        """Return the arguments of a command line with these values of flags.

        Raises BadInputError that names the key.
        """
        flags: list[str] = []
        words: list[str] = []
        for key, value in values.items():
            parameter = self._named(key)
            given = value if isinstance(value, list) else [value]
            if key == "csv":
                flags += ["--csv", TABLE] if self._switch(key, value, parameter) else []
            elif parameter.param_type_name == "argument":
                words += map(str, given)
            elif parameter.is_flag:
                flags += self._switch(key, value, parameter)
            else:
                flags += [part for each in given for part in (parameter.opts[0], _typed(key, each))]
        return [*flags, *(["--", *words] if words else [])]

    def check(self, arguments: list[str]) -> None:
        """Parse the arguments with the command line, and run nothing. Raises BadInputError."""
        from typer.exceptions import TyperException

        try:
            context = self.command.make_context(
                f"nearfar {self.name}", list(arguments), obj=CHECK_ONLY
            )
            if self.name in _CHECKED:
                with context, kept_targets():
                    self.command.invoke(context)
        except TyperException as error:
            raise BadInputError(
                f"nearfar {self.name}: {error.format_message()}", f"nearfar {self.name} --help"
            ) from None

    def _parameters(self) -> dict[str, Any]:
        return {parameter.name: parameter for parameter in self.command.params}

    def _named(self, key: str) -> Any:
        """Return the parameter of a key: a flag without its dashes, or an argument."""
        known: dict[str, Any] = {}
        for parameter in self.command.params:
            is_word = parameter.param_type_name == "argument"
            for name in [parameter.name] if is_word else parameter.opts:
                known[name.lstrip("-")] = parameter
        for old, new in RENAMED.get(self.name, {}).items():
            known[old.lstrip("-")] = known[new.lstrip("-")]
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
        raise BadInputError(
            f"{key} requires a value, not {str(value).lower()}", f"give {key} a value"
        )
    return str(value)


def find_verb(root: Any, name: str) -> Verb:
    """Return a verb below ``root`` that has a JSON result. Raises BadInputError for other names."""
    command = root
    for word in name.split() or [""]:
        known = getattr(command, "commands", {})
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            raise BadInputError(
                f"unknown verb '{name}'",
                f"did you mean {near[0]}?" if near else "run nearfar --help for the list",
            )
        command = known[word]
    verb = Verb(name, command)
    if getattr(command, "commands", None):
        raise BadInputError(
            f"'{name}' is a group of verbs", f"run nearfar {name} --help for the list"
        )
    if not any(parameter.name == "json" for parameter in command.params) or name == "sweep":
        raise BadInputError(f"'{name}' has no JSON result", "name a verb with --json")
    return verb


def cell_arguments(root: Any, cell: Cell) -> tuple[Verb, list[str]]:
    """Return the verb of a cell and its arguments, after the command line has checked them."""
    try:
        verb = find_verb(root, cell.verb)
        arguments = verb.arguments(cell.values)
        verb.check(arguments)
    except BadInputError as error:
        raise BadInputError(f"{cell.where}: {error.what}", error.next_step) from None
    return verb, arguments
